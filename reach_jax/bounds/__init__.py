"""Upper bounds on what a prompt of finite precision can reach.

In float64 and log space, one theorem a function. Imports no sibling.
"""
