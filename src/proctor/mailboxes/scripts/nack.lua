-- Return a message. ARGV: id, receipt, delay, reason, and 0 if the delivery does not count.
-- Returns 1, or 0 if the caller does not hold the message.
local id, delay = ARGV[1], tonumber(ARGV[3])
local receipt, till, count, past = read_lease(redis.call('HGET', leases, id))
if receipt ~= ARGV[2] or till <= now then return 0 end
-- Deletions first: a server that is out of memory then allows the other commands.
redis.call('ZREM', later, id)
past = with_line(past, count, ARGV[4])
local forgiven = ARGV[5] == '0'
if forgiven then count = math.max(0, count - 1) end
redis.call('HSET', leases, id, write_lease(NOBODY, 0, count, past, forgiven))
if delay > 0 then
  put_later(now + delay, {id})
else
  redis.call('RPUSH', ready, id)
  ring()
end
return 1
