-- Extend a lease. ARGV: id, receipt, duration. Returns 1, or 0 if the caller does not hold the message.
local id, lease = ARGV[1], tonumber(ARGV[3])
local receipt, till, count, past, forgiven = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or till <= now then return 0 end
-- Deletions first: a server that is out of memory then allows the other commands.
redis.call('ZREM', later, id)
redis.call('HSET', leases, id, write_lease(receipt, now + lease, count, past, forgiven))
put_later(now + lease, {id})
return 1
