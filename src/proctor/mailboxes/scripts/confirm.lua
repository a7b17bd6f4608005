-- Count a provisional delivery. ARGV: id, receipt. Returns 1, or 0 if the caller does not hold the message.
local id = ARGV[1]
local receipt, till, count, past = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or till <= now then return 0 end
redis.call('HSET', leases, id, write_lease(receipt, till, count, past, false))
return 1
