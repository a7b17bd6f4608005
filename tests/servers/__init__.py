"""Servers for tests on this machine: PostgreSQL, Redis and SQS."""

from tests.servers.postgres_server import PostgresServer as PostgresServer
from tests.servers.redis_server import RedisServer as RedisServer
from tests.servers.sqs_server import SQSServer as SQSServer
