-- Set a message aside. ARGV: id, receipt, reason, and 1 if the lease must not be over.
-- What cannot be read is set aside also after its lease, as long as no other has it.
-- Gives 1, or 0 if it was not the caller's.
local id = ARGV[1]
local receipt, till, count, past = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or (ARGV[4] == '1' and till <= now) then return 0 end
-- First what frees memory: after it a server that has none left allows the rest.
redis.call('ZREM', later, id)
bury(redis.call('HGET', mail, id), count, past, ARGV[3], id)
forget({id})
return 1
