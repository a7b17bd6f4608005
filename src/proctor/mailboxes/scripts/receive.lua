-- Lease messages. ARGV: how many, the duration, the receipt, the maximum of deliveries (0: no limit),
-- whether the caller will not wait, and whether the deliveries are provisional.
-- Returns in how many ms to check again (0: there are more; -1: nothing is due), the delivery counts, separated by
-- spaces, and then each message as it was sent.
local most, lease, receipt = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local too_many, leaving, provisional = tonumber(ARGV[4]), ARGV[5] == '1', ARGV[6] == '1'
-- The work of one call is limited, so that other clients are served.
local AT_ONCE = 100
-- The longest lease or delay; a record with a later time is damaged.
local LONGEST = 43200000 + 60000

-- The caller waits for the next message.
redis.call('DEL', gone)
local function surface(due)
  if #due == 0 then return end
  for _, id in ipairs(due) do
    local text = redis.call('HGET', leases, id)
    local holder, _, count, past, forgiven = read_lease(text)
    if holder ~= NOBODY then
      past = with_line(past, count, '')
      redis.call('HSET', leases, id, write_lease(NOBODY, 0, count, past, forgiven))
    end
  end
  redis.call('ZREM', later, unpack(due))
  redis.call('RPUSH', ready, unpack(due))
end

-- Restore messages that are in neither queue, which happens only if the keys were damaged.
local function put_back_strays()
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', mail, cursor, 'COUNT', AT_ONCE)
    cursor = page[1]
    for place = 1, #page[2], 2 do redis.call('RPUSH', ready, page[2][place]) end
  until cursor == '0'
end

surface(redis.call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, AT_ONCE))

local answer, given, held, counts, buried = {-1, ''}, {}, {}, {}, {}
local till = now + lease
local fresh = write_lease(receipt, till, 1, '', provisional)
while #given < most and #buried < AT_ONCE do
  local ids = redis.call('LRANGE', ready, 0, most - #given - 1)
  if #ids == 0 then break end
  -- Reading first: a key of the wrong type ends the script, and then nothing must be lost.
  local letters = redis.call('HMGET', mail, unpack(ids))
  local before = redis.call('HMGET', leases, unpack(ids))
  redis.call('LTRIM', ready, #ids, -1)
  for place, id in ipairs(ids) do
    local _, _, count, past, forgiven = read_lease(before[place])
    local fault = find_fault(id, letters[place])
    if fault then
      bury(letters[place], count, past, fault, id)
      buried[#buried + 1] = id
    elseif too_many > 0 and count >= too_many and not forgiven then
      bury(letters[place], count, past, '')
      buried[#buried + 1] = id
    else
      local number = #given + 1
      given[number] = id
      held[2 * number - 1] = id
      held[2 * number] = before[place]
        and write_lease(receipt, till, count + 1, past, provisional) or fresh
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

if #given == 0 and most > 0 and redis.call('EXISTS', ready) == 0 then
  surface(redis.call('ZRANGEBYSCORE', later, now + LONGEST, '+inf', 'LIMIT', 0, AT_ONCE))
  if redis.call('EXISTS', later) == 0 and redis.call('EXISTS', mail) == 1 then put_back_strays() end
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
