-- Make a provisional delivery count. ARGV: id, receipt. Gives 1, or 0 if it was not the caller's.
local id = ARGV[1]
local receipt, till, count, past = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or till <= now then return 0 end
redis.call('HSET', leases, id, write_lease(receipt, till, count, past, false))
return 1
