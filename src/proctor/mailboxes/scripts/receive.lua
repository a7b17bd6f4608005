-- Lease messages. ARGV: how many, for how long, the receipt, how many deliveries are too many
-- (0: none), and whether the caller leaves after this look.
-- Gives in how many ms to look again (0: there is more; -1: nothing is due), how often each was delivered, with
-- spaces between, and then each as it was sent.
local most, lease, receipt = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local too_many, leaving = tonumber(ARGV[4]), ARGV[5] == '1'
-- So much is done in one go, to let others have their turn.
local AT_ONCE = 100

-- Who receives waits for what is sent.
redis.call('DEL', gone)
local due = redis.call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, AT_ONCE)
if #due > 0 then
  for _, id in ipairs(due) do
    local holder, _, count, past = read_lease(redis.call('HGET', leases, id))
    if holder ~= NOBODY then
      past = with_line(past, count, '')
      redis.call('HSET', leases, id, write_lease(NOBODY, 0, count, past))
    end
  end
  redis.call('ZREM', later, unpack(due))
  redis.call('RPUSH', ready, unpack(due))
end

local answer, given, held, counts, buried = {-1, ''}, {}, {}, {}, {}
local till = now + lease
local fresh = write_lease(receipt, till, 1, '')
while #given < most and #buried < AT_ONCE do
  local ids = redis.call('LRANGE', ready, 0, most - #given - 1)
  if #ids == 0 then break end
  redis.call('LTRIM', ready, #ids, -1)
  local letters = redis.call('HMGET', mail, unpack(ids))
  local before = redis.call('HMGET', leases, unpack(ids))
  for place, id in ipairs(ids) do
    local _, _, count, past = read_lease(before[place])
    if not letters[place] then
      -- Only a server that is set to throw away keys comes here.
      buried[#buried + 1] = id
    elseif too_many > 0 and count >= too_many then
      bury(letters[place], count, past, '')
      buried[#buried + 1] = id
    else
      local number = #given + 1
      given[number] = id
      held[2 * number - 1] = id
      held[2 * number] = before[place] and write_lease(receipt, till, count + 1, past) or fresh
      counts[number] = count + 1
      answer[number + 2] = letters[place]
    end
  end
end
if #buried > 0 then forget(buried) end
if #given > 0 then
  answer[2] = table.concat(counts, ' ')
  redis.call('HSET', leases, unpack(held))
  put_later(till, given)
end

if redis.call('EXISTS', ready) == 1 then
  answer[1] = 0
  ring()
elseif #given == 0 then
  local first = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
  if first then
    answer[1] = math.max(0, tonumber(first) - now)
    -- Who leaves hands the watch over to another who waits.
    if leaving and answer[1] < WATCH then ring() end
  else
    redis.call('DEL', bell)
  end
end
return answer
