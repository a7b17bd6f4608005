"""The system under evaluation, made callable: functions, agents, runnables, programs, endpoints."""
