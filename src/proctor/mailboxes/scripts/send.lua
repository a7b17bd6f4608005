-- Send messages. ARGV: capacity (0: unlimited), delay, reply_to, a token, then at most 100 bodies.
-- Ids are derived from the sender's token, so that a retry after a lost response creates no duplicates.
-- Returns 1, 0 if the mailbox would be too full, or -1 if it was removed.
if redis.call('EXISTS', gone) == 1 then return -1 end
local capacity, delay, mark, first = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[4], 5

local function id_of(place)
  return string.format('%s%02d', mark, place - first)
end

if capacity > 0 then
  local fresh = 0
  for place = first, #ARGV do
    fresh = fresh + 1 - redis.call('HEXISTS', mail, id_of(place))
  end
  if fresh > 0 and redis.call('HLEN', mail) + fresh > capacity then return 0 end
end

local head = ' ' .. now .. ' ' .. ARGV[3] .. '\n'
local put = {}
for place = first, #ARGV do
  local id = id_of(place)
  if redis.call('HSETNX', mail, id, id .. head .. ARGV[place]) == 1 then put[#put + 1] = id end
end
if #put > 0 then
  if delay > 0 then
    put_later(now + delay, put)
  else
    redis.call('RPUSH', ready, unpack(put))
    ring()
  end
end
return 1
