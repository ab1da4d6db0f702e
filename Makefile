# `make` alone lists what there is. Everything happens in .venv; nothing is installed outside of it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON    ?= python3
VENV      := .venv
VENV41    := .venv-spark41
VENVFLINK := .venv-flink
VENVLOWEST := .venv-lowest
VENVNEWEST := .venv-newest
DEMO_ARGS ?=
BENCH_ARGS ?=
FORMAT    ?= paimon
SOAK_STEPS ?= 20000
FUZZ_CONDITIONS ?= 5000
FUZZ_CASES ?= 2000
FUZZ_SEED ?= 0
PLACE ?= paimon-s3
PYTEST_ARGS ?=
ERASE_ARGS ?=

# Spark starts its workers with the python3 on PATH unless told otherwise, and that one does not know our packages.
export PYSPARK_PYTHON := $(CURDIR)/$(VENV)/bin/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# Without bytecode each of hundreds of processes compiles the package again, and pytest rewrites each of its modules.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

READY   := $(VENV)/.installed
READY41 := $(VENV41)/.installed
READYFLINK := $(VENVFLINK)/.installed
CLASSES := $(VENV)/spark-classes.jsa
PLOTS   := $(VENV)/.plots
PLOTS41 := $(VENV41)/.plots
SITE    := $(VENV)/.site

PARALLEL := -n 2 --dist loadgroup
# Tables of tests are in memory where there is room: scripts/test-tmp.
PYTEST = TMPDIR=$$(scripts/test-tmp) $(VENV)/bin/pytest

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- environments

.PHONY: venv
venv: $(READY) ## Create .venv with everything the project needs

$(READY): pyproject.toml constraints.txt
	@scripts/check-python $(PYTHON)
	@echo "Installing into $(VENV) (once, about two minutes) …"
	@[ -x $(VENV)/bin/python ] || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install -q --upgrade pip
	@$(VENV)/bin/python -m pip install -q -c constraints.txt -e '.[test,dev]'
	@touch $@

$(READY41): pyproject.toml constraints.txt
	@scripts/check-python $(PYTHON)
	@echo "Installing Spark 4.1 into $(VENV41) (once, about two minutes) …"
	@[ -x $(VENV41)/bin/python ] || $(PYTHON) -m venv $(VENV41)
	@grep -v '^pyspark==' constraints.txt > $(VENV41)/constraints.txt
	@$(VENV41)/bin/python -m pip install -q --upgrade pip
	@$(VENV41)/bin/python -m pip install -q -c $(VENV41)/constraints.txt -e '.[test]' 'pyspark==4.1.*'
	@touch $@

$(VENVLOWEST)/.installed: pyproject.toml constraints-lowest.txt
	@scripts/check-python $(PYTHON)
	@echo "Installing the lowest versions into $(VENVLOWEST) (once, about two minutes) …"
	@[ -x $(VENVLOWEST)/bin/python ] || $(PYTHON) -m venv $(VENVLOWEST)
	@$(VENVLOWEST)/bin/python -m pip install -q --upgrade pip
	@$(VENVLOWEST)/bin/python -m pip install -q -c constraints-lowest.txt -e '.[test]'
	@touch $@

# Without Paimon, whose bounds would hold pyarrow and fsspec back. Nothing is constrained: made anew, it has today's versions.
.PHONY: venv-newest
venv-newest:
	@scripts/check-python $(PYTHON)
	@echo "Installing the newest of everything but Paimon into $(VENVNEWEST) (about two minutes) …"
	@$(PYTHON) -m venv --clear $(VENVNEWEST)
	@$(VENVNEWEST)/bin/python -m pip install -q --upgrade pip
	@$(VENVNEWEST)/bin/python -m pip install -q -e '.[iceberg,s3,gcs,azure,connect,test-tools]'

# For the JVMs that tests start: with it they need half the processor time until they are up.
$(CLASSES): $(READY) scripts/spark_classes.py
	@echo "Archiving the classes of Spark (once, half a minute) …"
	@$(VENV)/bin/python scripts/spark_classes.py $@ 2> $(VENV)/spark-classes.log || { cat $(VENV)/spark-classes.log; exit 1; }

$(PLOTS): $(READY)
	@$(VENV)/bin/python -m pip install -q -c constraints.txt -e '.[bench]'
	@touch $@

$(PLOTS41): $(READY41)
	@$(VENV41)/bin/python -m pip install -q -c $(VENV41)/constraints.txt -e '.[bench]' 'pyspark==4.1.*'
	@touch $@

.PHONY: java
java:
	@scripts/check-java

.PHONY: browser
browser:
	@scripts/check-browser

# ---------------------------------------------------------------- see it work

.PHONY: demo
demo: java $(READY) ## Stream into a local table, kill the driver midway, restart, count the rows (FORMAT=iceberg, DEMO_ARGS=…)
	@$(VENV)/bin/pwc demo --format $(FORMAT) $(DEMO_ARGS)

.PHONY: demo-regions
demo-regions: java $(READY) ## One stream into five tables: one refuses for a while, 2 % bad rows, the driver is killed
	@$(VENV)/bin/python scripts/demo_regions.py $(DEMO_ARGS)

.PHONY: demo-pipeline
demo-pipeline: java $(READY) ## Table to table: kill the driver again and again, compact and expire the source meanwhile (FORMAT=iceberg)
	@$(VENV)/bin/python scripts/demo_pipeline.py --format $(FORMAT) $(DEMO_ARGS)

# ---------------------------------------------------------------- tests

# What runs at which tier, and what of it takes how long: docs/testing.md.
TIMES := .test-times

.PHONY: test
test: java browser lint ## What every change must pass: lint, types, tests of the first tier, S3 and Spark included (PYTEST_ARGS=…)
	@echo "Types, and the tests without Spark, S3 included. Each shows what it has when it ends …"
	@$(MAKE) --no-print-directory -j 2 --output-sync=line types-and-classes test-plain
	@echo "Tests with Spark, those that start clusters and drivers beside the others …"
	@$(MAKE) --no-print-directory test-spark
	@echo "A few of them again, on a standalone cluster and behind a Spark Connect server, at the same time …"
	@$(MAKE) --no-print-directory -j 2 --output-sync=line test-few-on-cluster test-few-on-connect

# One after the other, beside the plain tests: together they are shorter than those.
.PHONY: types-and-classes
types-and-classes: types
	@$(MAKE) --no-print-directory $(CLASSES)

.PHONY: test-plain
test-plain: browser $(READY) ## The part of `make test` without Spark
	@mkdir -p $(TIMES)
	@$(PYTEST) -n 3 --dist loadgroup -m 'not spark and not long' --junitxml=$(TIMES)/plain.xml $(PYTEST_ARGS)

.PHONY: test-spark
test-spark: java $(CLASSES) ## The part of `make test` with Spark
	@mkdir -p $(TIMES)
	@$(PYTEST) tests/spark $(PARALLEL) -m 'spark and not long' --junitxml=$(TIMES)/spark.xml $(PYTEST_ARGS)

.PHONY: test-few-on-cluster
test-few-on-cluster: java $(CLASSES)
	@mkdir -p $(TIMES)
	@PWC_SPARK=cluster $(PYTEST) tests/spark -m 'everywhere and not s3' --junitxml=$(TIMES)/cluster.xml $(PYTEST_ARGS)

.PHONY: test-few-on-connect
test-few-on-connect: java $(CLASSES)
	@mkdir -p $(TIMES)
	@PWC_SPARK=connect $(PYTEST) tests/spark -m 'everywhere and not s3 and not same_behind_connect' \
		--junitxml=$(TIMES)/connect.xml $(PYTEST_ARGS)

.PHONY: check
check: lint types ## The fast part: lint, types, tests that need no server, no Spark and no browser
	@$(PYTEST) -n 3 --dist loadgroup -m 'not spark and not s3 and not slow and not browser and not long' $(PYTEST_ARGS)

.PHONY: test-times
test-times: $(READY) ## Write docs/test-times.md: where the time of the last `make test` went
	@$(VENV)/bin/python scripts/test_times.py --run 'make test' $(TIMES)/plain.xml $(TIMES)/spark.xml $(TIMES)/cluster.xml \
		$(TIMES)/connect.xml > docs/.test-times.md.new
	@mv docs/.test-times.md.new docs/test-times.md

# What decides is pure, and each of its branches has a test; what acts is run by others as well (Spark, kills, soak).
.PHONY: coverage
coverage: $(READY) ## Branches of paimon_sink/commit that the tests of it and the faults in memory take: all of what decides
	@TMPDIR=$$(scripts/test-tmp) $(VENV)/bin/coverage run -m pytest -q -p no:xdist tests/commit tests/faults \
		-k 'memory or commit' -m 'not spark and not s3 and not long and not slow' $(PYTEST_ARGS)
	@$(VENV)/bin/coverage report --fail-under=95
	@$(VENV)/bin/coverage report --fail-under=100 --include='*/decide.py,*/fold.py,*/figures.py,*/run.py'

.PHONY: hooks
hooks: $(READY) ## Have git run lint before each commit, and types before each push (.pre-commit-config.yaml)
	@$(VENV)/bin/pre-commit install --hook-type pre-commit --hook-type pre-push

.PHONY: test-matrix
test-matrix: java $(READY) ## Every test in one place (PLACE=paimon-s3), also those that `make test` runs in its reference place only
	@PWC_PLACES=$(PLACE) $(PYTEST) $(PARALLEL) $(PYTEST_ARGS)

.PHONY: test-long
test-long: java $(READY) ## What repeats at length: kills at every step, races, a soak, the demo in each format
	@$(PYTEST) $(PARALLEL) -m long $(PYTEST_ARGS)

.PHONY: test-cluster
test-cluster: java $(READY) ## The Spark tests again, on a standalone cluster of two workers
	@PWC_PLACES=all PWC_SPARK=cluster $(VENV)/bin/pytest tests/spark $(PYTEST_ARGS)

.PHONY: test-connect
test-connect: java $(READY) ## The Spark tests again, behind a Spark Connect server
	@PWC_PLACES=all PWC_SPARK=connect $(VENV)/bin/pytest tests/spark $(PYTEST_ARGS)

ON_SPARK41 := test-spark41 test-spark41-small interop-paimon interop-iceberg interop-streams
$(ON_SPARK41): export PYSPARK_PYTHON := $(CURDIR)/$(VENV41)/bin/python
$(ON_SPARK41): export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(VENV41)/bin/python

.PHONY: test-spark41
test-spark41: java $(READY41) ## The Spark tests and the smoke set again, on Spark 4.1
	@PWC_PLACES=all $(VENV41)/bin/pytest -m 'spark or smoke' $(PYTEST_ARGS)

.PHONY: test-spark41-small
test-spark41-small: java $(READY41) ## Only the smoke set on Spark 4.1
	@TMPDIR=$$(scripts/test-tmp) $(VENV41)/bin/pytest -m smoke $(PYTEST_ARGS)

ON_BOUNDS := test-lowest test-newest
$(ON_BOUNDS): unexport PYSPARK_PYTHON
$(ON_BOUNDS): unexport PYSPARK_DRIVER_PYTHON

# What the newest versions of others tell their users: PySpark of pandas 3, polars of a faster planner.
NEWS_OF_OTHERS := -W 'default:PySpark does not yet fully support pandas:FutureWarning' -W 'default:Iceberg scan planning:Warning'

# Those that can be collected without Paimon.
ON_NEWEST := $(wildcard tests/formats/test_iceberg_*.py) tests/formats/test_contract.py tests/formats/test_missing_packages.py \
	tests/storage tests/spark/test_iceberg.py --ignore=tests/storage/test_renaming_engines.py

.PHONY: test-lowest
test-lowest: java $(VENVLOWEST)/.installed ## The smoke set and the tests of stores on the lowest versions that pyproject.toml allows
	@TMPDIR=$$(scripts/test-tmp) $(VENVLOWEST)/bin/pytest -m smoke $(PYTEST_ARGS)
	@TMPDIR=$$(scripts/test-tmp) $(VENVLOWEST)/bin/pytest tests/storage -m 'not spark' $(PYTEST_ARGS)

.PHONY: test-newest
test-newest: java venv-newest ## Iceberg on the newest of everything, in an environment without Paimon
	@TMPDIR=$$(scripts/test-tmp) PWC_PLACES=iceberg-sqlite $(VENVNEWEST)/bin/pytest $(ON_NEWEST) $(NEWS_OF_OTHERS) $(PYTEST_ARGS)

.PHONY: wheel
wheel: $(READY) ## Build wheel and sdist into dist/, and check them
	@rm -rf dist
	@$(VENV)/bin/python -m build --quiet
	@$(VENV)/bin/twine check --strict dist/*

.PHONY: dist
dist: java wheel ## The same, and install the wheel into empty environments and run the README there (some minutes)
	@$(VENV)/bin/pytest integration/wheel $(PYTEST_ARGS)

.PHONY: examples
examples: java $(READY) $(READY41) ## The recipes that `make test` leaves out: the notebook, and Kafka with a real broker, on Spark 4.1
	@$(VENV)/bin/pytest integration/examples/test_notebook.py $(PYTEST_ARGS)
	@PYSPARK_PYTHON=$(CURDIR)/$(VENV41)/bin/python PYSPARK_DRIVER_PYTHON=$(CURDIR)/$(VENV41)/bin/python \
		$(VENV41)/bin/pytest integration/examples/test_kafka.py $(PYTEST_ARGS)

.PHONY: test-stores
test-stores: $(READY) ## Azure and Google Cloud Storage by their emulators: stores, both formats, races (npm and Go fetch them once)
	@TMPDIR=$$(scripts/test-tmp) $(VENV)/bin/pytest integration/stores $(PYTEST_ARGS)

.PHONY: integration
integration: test-minio ## The whole S3 suite and long runs on a real MinIO server (built from source once unless Docker is there)
	@scripts/with-minio $(VENV)/bin/python -m pytest integration --ignore=integration/interop --ignore=integration/wheel --ignore=integration/site --ignore=integration/examples --ignore=integration/stores $(PYTEST_ARGS)

.PHONY: test-minio
test-minio: java $(READY) ## Only the S3 suite, on MinIO
	@PWC_PLACES=all scripts/with-minio $(VENV)/bin/python -m pytest $(PARALLEL) -m 's3 and not spark' $(PYTEST_ARGS)
	@PWC_PLACES=all scripts/with-minio $(VENV)/bin/python -m pytest $(PARALLEL) -m 's3 and spark' $(PYTEST_ARGS)

.PHONY: minio
minio: $(READY) ## Build MinIO outside the repository, if it is not there yet, and say where
	@$(VENV)/bin/python -m integration.minio

$(READYFLINK):
	@scripts/check-python $(PYTHON)
	@echo "Installing Flink into $(VENVFLINK) (once, 800 MB) …"
	@[ -x $(VENVFLINK)/bin/python ] || $(PYTHON) -m venv $(VENVFLINK)
	@$(VENVFLINK)/bin/python -m pip install -q --upgrade pip 'setuptools<80' wheel
	@$(VENVFLINK)/bin/python -m pip install -q 'apache-flink==2.0.*'
	@touch $@

.PHONY: interop-flink
interop-flink: java $(READY) $(READYFLINK) ## Flink reads and maintains our Paimon tables
	@PWC_FLINK_PYTHON=$(CURDIR)/$(VENVFLINK)/bin/python $(VENV)/bin/python -m pytest integration/interop/flink $(PYTEST_ARGS)

.PHONY: interop-iceberg
interop-iceberg: java $(READY41) ## One table in our hands and in those of Iceberg's Java library, on Spark 4.1
	@$(VENV41)/bin/pytest integration/interop/iceberg $(PYTEST_ARGS)

.PHONY: interop-streams
interop-streams: java $(READY41) ## The streaming sources of Iceberg and Delta beside ours, on the same histories, on Spark 4.1
	@$(VENV41)/bin/pytest integration/interop/streams $(PYTEST_ARGS)

.PHONY: interop
interop: interop-paimon interop-iceberg interop-streams interop-flink ## Beside the JVM connectors and Flink, on the same tables

.PHONY: interop-paimon
interop-paimon: java $(READY41) ## Java Paimon and this sink on the same tables
	@$(VENV41)/bin/pytest integration/interop/paimon $(PYTEST_ARGS)

.PHONY: soak
soak: java $(READY) ## Any order of faults against the models, then kill real clusters 200 and 100 times (SOAK_KILLS=…, SOAK_SEED=…)
	@echo "The models, $(SOAK_STEPS) steps each …"
	@PWC_MODEL_STEPS=$(SOAK_STEPS) $(VENV)/bin/pytest tests/model -m 'not s3' $(PYTEST_ARGS)
	@PWC_MODEL_STEPS=$(SOAK_STEPS) $(VENV)/bin/pytest tests/follow/test_model.py -k soak $(PYTEST_ARGS)
	@echo "Real processes …"
	@$(VENV)/bin/python -m integration.soak
	@$(MAKE) --no-print-directory soak-pipeline

.PHONY: soak-pipeline
soak-pipeline: java $(READY) ## The part of it about streams: table to table, in both formats (SOAK_KILLS=100, SOAK_SEED=…)
	@for each in paimon iceberg; do SOAK_FORMAT=$$each $(VENV)/bin/python -m integration.soak --pipeline; done

.PHONY: soak-erase
soak-erase: $(READY) ## Deletes beside two writers, compaction and expiry, all of them killed, for five minutes a format (ERASE_ARGS=…)
	@for each in paimon iceberg; do $(VENV)/bin/python -m integration.soak.erase --format $$each $(ERASE_ARGS); done

.PHONY: races
races: $(READY) ## Many processes commit to one table at once, in full length: 8 x 200 and 8 x 100 commits
	@PWC_RACES=full $(VENV)/bin/pytest tests/faults/test_races.py tests/formats/test_iceberg_races.py $(PYTEST_ARGS)

.PHONY: mutants
mutants: $(READY) ## Switch off one protection after the other, and see that its tests notice
	@$(VENV)/bin/python scripts/mutants.py

.PHONY: fuzz
fuzz: $(READY) ## Hostile input, two thousand examples a test
	@PWC_FUZZ_EXAMPLES=2000 $(VENV)/bin/pytest tests/fuzz -m 'not s3' $(PYTEST_ARGS)

.PHONY: fuzz-where
fuzz-where: java $(READY) ## The option where against Spark's own WHERE (FUZZ_CONDITIONS=5000 a format, FUZZ_SEED=…)
	@PWC_WHERE_CONDITIONS=$(FUZZ_CONDITIONS) PWC_WHERE_SEED=$(FUZZ_SEED) \
		$(VENV)/bin/pytest -n 0 -s tests/spark/test_where_like_spark.py $(PYTEST_ARGS)

.PHONY: fuzz-scan
fuzz-scan: java $(READY) ## Random reads of random histories against Spark (FUZZ_CASES=2000, FUZZ_SEED=…)
	@PWC_SCAN_CASES=$(FUZZ_CASES) PWC_SCAN_SEED=$(FUZZ_SEED) \
		$(VENV)/bin/pytest -n 0 -s tests/spark/test_scans_like_spark.py $(PYTEST_ARGS)

# ---------------------------------------------------------------- benchmarks

# Spark 4.1 is the newest for which there are both JVM connectors. One after the other: two at once measure each other.
BENCHES := throughput-batch throughput-stream replay recovery contention fan-out overhead memory metrics encoding profile \
	read read-balance read-memory growth latency messages delete delete-memory follow

.PHONY: bench
bench: ## All benchmarks, one after the other, into benchmarks/results (many hours)
	@for each in $(BENCHES); do $(MAKE) --no-print-directory bench-$$each; done

.PHONY: bench-throughput-batch
bench-throughput-batch: java $(PLOTS41) ## Rows a second and bytes of a batch job, beside Spark's Parquet and the JVM connectors (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/throughput.py batch $(BENCH_ARGS)

.PHONY: bench-throughput-stream
bench-throughput-stream: java $(PLOTS41) ## The same rows through a stream of 20 batches (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/throughput.py stream $(BENCH_ARGS)

.PHONY: bench-bytes
bench-bytes: java $(PLOTS41) ## Only the size of what each writes (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/throughput.py bytes $(BENCH_ARGS)

.PHONY: bench-throughput-newest
bench-throughput-newest: java $(PLOTS) ## Batch and stream on the newest Spark, without the JVM connectors (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/throughput.py batch --no-jvm $(BENCH_ARGS)
	@$(VENV)/bin/python benchmarks/throughput.py stream --no-jvm $(BENCH_ARGS)

.PHONY: bench-read
bench-read: java $(PLOTS41) ## Queries on a table, beside Spark's Parquet on the same files and the Iceberg JVM connector (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/read.py $(BENCH_ARGS)

.PHONY: bench-read-newest
bench-read-newest: java $(PLOTS) ## The same on the newest Spark, without the JVM connector (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/read.py --no-jvm $(BENCH_ARGS)

.PHONY: bench-read-balance
bench-read-balance: java $(PLOTS) ## How evenly the tasks of a read share one large file among small ones (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/read.py --balance $(BENCH_ARGS)

.PHONY: bench-read-memory
bench-read-memory: $(PLOTS) ## Peak memory of a reading task for a file and one 20 times as large (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/read.py --memory $(BENCH_ARGS)

.PHONY: bench-follow
bench-follow: java $(PLOTS41) ## Streams out of a table, beside Iceberg's JVM source: backlog, start, delay (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/follow.py $(BENCH_ARGS)

.PHONY: bench-replay
bench-replay: java $(PLOTS41) ## Who doubles the rows of a replayed batch (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/replay.py $(BENCH_ARGS)

.PHONY: bench-recovery
bench-recovery: java $(PLOTS) ## From a restart to the first snapshot, with and without a crash (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/recovery.py $(BENCH_ARGS)

.PHONY: bench-contention
bench-contention: $(PLOTS) ## 1 to 8 committers on one table: commits a second, and lost ones (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/contention.py $(BENCH_ARGS)

.PHONY: bench-fan-out
bench-fan-out: $(PLOTS) ## One task that writes 1, 100 and 1,000 partitions: time and memory (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/fan_out.py $(BENCH_ARGS)

.PHONY: bench-growth
bench-growth: $(PLOTS) ## Commit and planning time as a table gets old, beside pypaimon and pyiceberg (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/growth.py $(BENCH_ARGS)

.PHONY: bench-overhead
bench-overhead: $(PLOTS) ## A commit of 2, 200 and 2,000 files against a bare put of one object (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/commit_overhead.py $(BENCH_ARGS)

.PHONY: bench-delete
bench-delete: java $(PLOTS41) ## A delete of 1 % of 20M rows and a day replaced, beside Iceberg's JVM connector (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/delete.py $(BENCH_ARGS)

.PHONY: bench-delete-memory
bench-delete-memory: $(PLOTS) ## Peak memory of a deleting task for a file and one 20 times as large (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/delete.py --memory $(BENCH_ARGS)

.PHONY: bench-latency
bench-latency: $(PLOTS) ## Commits, and what else is asked of a table, with 0, 10 and 50 ms added to each request (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/latency.py $(BENCH_ARGS)

.PHONY: bench-messages
bench-messages: $(PLOTS) ## The driver with 5,000 messages of 40,000 files: time, memory and bytes (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/messages.py $(BENCH_ARGS)

.PHONY: bench-quarantine
bench-quarantine: $(READY) ## What judging rows costs: with a quarantine and two checks against without (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/quarantine.py $(BENCH_ARGS)

.PHONY: bench-memory
bench-memory: $(PLOTS) ## Peak memory of a task for 1, 10 and 50 times the rows (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/memory.py $(BENCH_ARGS)

.PHONY: bench-metrics
bench-metrics: $(PLOTS) ## What the listener metrics costs in a batch of a million rows (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/metrics_cost.py $(BENCH_ARGS)

.PHONY: bench-profile
bench-profile: java $(PLOTS41) ## Where the time goes between a Parquet file and a sink in Python (BENCH_ARGS=…)
	@$(VENV41)/bin/python benchmarks/profile_path.py $(BENCH_ARGS)

.PHONY: bench-encoding
bench-encoding: $(PLOTS) ## What it costs to make Parquet of rows, as tasks do it and in other ways (BENCH_ARGS=…)
	@$(VENV)/bin/python benchmarks/encoding.py $(BENCH_ARGS)

.PHONY: bench-steps
bench-steps: $(READY) ## What the named steps cost when nobody listens
	@$(VENV)/bin/python benchmarks/step_cost.py

# ---------------------------------------------------------------- code

.PHONY: lint
lint: $(READY) ## Check style and formatting
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

.PHONY: types
types: $(READY) ## Check types
	@$(VENV)/bin/mypy

.PHONY: format
format: $(READY) ## Mend what the linter can mend, and format
	@$(VENV)/bin/ruff check --fix-only .
	@$(VENV)/bin/ruff format .

.PHONY: docs
docs: $(READY) ## Write docs/options.md, docs/fault-matrix.md and the tables of other pages from the code and the tests
	@$(VENV)/bin/pwc options --markdown > docs/.options.md.new
	@mv docs/.options.md.new docs/options.md
	@$(VENV)/bin/python scripts/fault_matrix.py > docs/.fault-matrix.md.new
	@mv docs/.fault-matrix.md.new docs/fault-matrix.md
	@$(VENV)/bin/python scripts/doc_tables.py
	@$(VENV)/bin/python scripts/public_interface.py

$(SITE): $(READY)
	@$(VENV)/bin/python -m pip install -q -c constraints.txt -e '.[docs]'
	@touch $@

.PHONY: site
site: browser $(SITE) ## Build the documentation site into site/, without warnings, check its links, and look at it in a browser
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	@$(VENV)/bin/pytest integration/site $(PYTEST_ARGS)

.PHONY: screenshots
screenshots: browser $(READY) ## Make the pictures of docs/watch.md from a real stream (about a minute)
	@$(VENV)/bin/python scripts/screenshots.py

.PHONY: clean
clean: ## Remove environments, caches and what the demo wrote
	@rm -rf $(VENV) $(VENV41) $(VENVFLINK) $(VENVLOWEST) $(VENVNEWEST) demo build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@rm -rf spark-warehouse metastore_db derby.log $(TIMES) docs/.*.md.new
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
