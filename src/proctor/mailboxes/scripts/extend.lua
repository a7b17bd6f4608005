-- Lengthen a lease. ARGV: id, receipt, for how long. Gives 1, or 0 if it was not the caller's.
local id, lease = ARGV[1], tonumber(ARGV[3])
local receipt, till, count, past, forgiven = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or till <= now then return 0 end
-- First what frees memory: after it a server that has none left allows the rest.
redis.call('ZREM', later, id)
redis.call('HSET', leases, id, write_lease(receipt, now + lease, count, past, forgiven))
put_later(now + lease, {id})
return 1
