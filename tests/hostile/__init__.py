"""Repositories made to do harm, and those that people really have."""
