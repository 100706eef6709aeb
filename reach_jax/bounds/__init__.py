"""Upper bounds on what a prompt of finite precision can reach: float64, log space, one theorem a function."""
