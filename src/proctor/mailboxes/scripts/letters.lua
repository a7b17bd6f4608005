-- Look at what was set aside, the newest first. ARGV: how many.
return redis.call('XREVRANGE', dead, '+', '-', 'COUNT', ARGV[1])
