"""Detection over files of any size: JSONL or Parquet in, one row out for each row in."""

NEEDS = ("manifests",)
