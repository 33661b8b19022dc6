"""The rows of the lazy evaluator's tables. Fields that are a start and an end enclose rows of another one."""
