"""For tests of table formats, whoever wrote them: the contract as a suite of pytest classes to subclass.

The only room that imports pytest, and no other room imports it. docs/adding-a-format.md says how to use it.

* ``contract_lake``: the place for tables that a format's author hands over, and what the clauses do there;
* ``format_contract``: the clauses, each a test; and those that take a second engine;
* ``refs_contract``: clauses about tags and about rolling back.
"""

import pytest

# A clause that fails shows the values it compared, as in a test module.
pytest.register_assert_rewrite("paimon_sink.testing.format_contract", "paimon_sink.testing.refs_contract")

from paimon_sink.testing.contract_lake import ContractLake, SecondEngine  # noqa: E402 - rewritten first
from paimon_sink.testing.format_contract import FormatContract, SecondEngineContract  # noqa: E402 - the same
from paimon_sink.testing.refs_contract import RefsContract, RollbackContract  # noqa: E402 - the same

__all__ = ["ContractLake", "FormatContract", "RefsContract", "RollbackContract", "SecondEngine", "SecondEngineContract"]
