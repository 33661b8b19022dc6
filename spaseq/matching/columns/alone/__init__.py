"""Events that come alone: kept by the hundred, their graph patterns joined by compiled code."""
