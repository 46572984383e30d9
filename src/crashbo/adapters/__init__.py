"""Thin adapters to other tools: no maths here, and none of them imports another."""
