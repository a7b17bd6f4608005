-- Return the dead letters, newest first. ARGV: how many.
return redis.call('XREVRANGE', dead, '+', '-', 'COUNT', ARGV[1])
