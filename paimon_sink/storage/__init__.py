"""Put-if-absent, list, delete, on local disks, S3 and every fsspec store that can refuse to overwrite."""
