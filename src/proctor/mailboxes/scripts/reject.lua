-- Turn a message into a dead letter. ARGV: id, receipt, reason, and 1 if the lease must not have expired.
-- An unreadable message is rejected after its lease too, unless another receiver holds it.
-- Returns 1, or 0 if the caller does not hold the message.
local id = ARGV[1]
local receipt, till, count, past = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or (ARGV[4] == '1' and till <= now) then return 0 end
-- Deletions first: a server that is out of memory then allows the other commands.
redis.call('ZREM', later, id)
bury(redis.call('HGET', mail, id), count, past, ARGV[3], id)
forget({id})
return 1
