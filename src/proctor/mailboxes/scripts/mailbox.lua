-- Functions that all scripts share; this file is prepended to each of them.
--
-- ready   LIST    ids that can be received, oldest first
-- later   ZSET    leased and delayed ids, by the time when they can be received
-- mail    HASH    id -> "ID SENT_AT REPLY_TO\nBODY", never changed
-- leases  HASH    id -> "RECEIPT UNTIL DELIVERIES\nHISTORY", after the first delivery; UNTIL begins
--                 with an extra 0 if losing the lease does not count (a provisional delivery)
-- bell    LIST    at most one token, which wakes waiting receivers
-- dead    STREAM  dead letters
-- gone    STRING  exists if the mailbox was removed: nothing may be sent to it
--
-- An id is in `ready` or in `later`, never in both. Times are milliseconds of the server's clock.
local ready, later, mail, leases, bell, dead, gone = unpack(KEYS)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Waiting receivers check again after this time at the latest.
local WATCH = 5000
local BELL_LASTS = 60000
local MAX_HISTORY = 10
local MAX_DEAD = 10000
-- Redis stores a hash of short values as a list, in which looking up a missing field reads everything.
-- With values of more than 64 bytes it is a hash table from the start.
local PADDING = string.rep(' ', 64)
-- The receipt of a message without a lease.
local NOBODY = '-'
-- The last millisecond of the year 9999: later times cannot be displayed.
local LAST_MOMENT = 253402300799999

-- If there is a token already, no receiver is waiting for one.
local function ring()
  if redis.call('EXISTS', bell) == 0 then
    redis.call('RPUSH', bell, '1')
    redis.call('PEXPIRE', bell, BELL_LASTS)
  end
end

-- Waiting receivers know the earliest time so far; wake them for an earlier one.
local function put_later(at, ids)
  local news = false
  if at - now < WATCH then
    local first = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
    news = not first or at < tonumber(first)
  end
  local pairs_of, text = {}, string.format('%d', at)
  for place, id in ipairs(ids) do
    pairs_of[2 * place - 1], pairs_of[2 * place] = text, id
  end
  redis.call('ZADD', later, unpack(pairs_of))
  if news then ring() end
end

-- The fifth value is whether losing this lease does not count. A damaged record counts as no lease,
-- and the history mentions it.
local function read_lease(text)
  if not text then return NOBODY, 0, 0, '', false end
  local receipt, zero, till, count, past =
    string.match(text, '^(%S+) (0?)(%d+) (%d+) *\n(.*)$')
  if not receipt or #till > 15 or #count > 9 then
    return NOBODY, 0, 0, '0 its lease record was unreadable', false
  end
  return receipt, tonumber(till), tonumber(count), past, zero == '0'
end

local function write_lease(receipt, till, count, past, forgiven)
  local zero = forgiven and '0' or ''
  return receipt .. ' ' .. zero .. till .. ' ' .. count .. PADDING .. '\n' .. past
end

-- Return what is wrong with a message's record, or nil.
local function find_fault(id, letter)
  if not letter then return 'unreadable: its record is missing' end
  local key, sent = string.match(letter, '^(%w+) (%d+) [%w_-]*\n')
  if not key then return 'unreadable: its record has no valid header' end
  if key ~= id then return 'unreadable: its record is that of another message' end
  if #sent > 15 or tonumber(sent) > LAST_MOMENT then
    return 'unreadable: its record has no valid time'
  end
  return nil
end

-- A line is "DELIVERY REASON"; without a reason, the lease expired.
local function with_line(past, count, reason)
  local line = count .. ' ' .. reason
  if past == '' then return line end
  past = past .. '\n' .. line
  local _, breaks = string.gsub(past, '\n', '')
  if breaks >= MAX_HISTORY then past = string.gsub(past, '^[^\n]*\n', '', 1) end
  return past
end

-- Without a reason, there were too many deliveries. The id is needed only if the record lacks it.
local function bury(letter, count, past, reason, id)
  redis.call(
    'XADD', dead, 'MAXLEN', MAX_DEAD, '*',
    'letter', letter or '', 'count', count, 'past', past, 'reason', reason, 'id', id or ''
  )
end

local function forget(ids)
  local gone = redis.call('HDEL', mail, unpack(ids))
  redis.call('HDEL', leases, unpack(ids))
  redis.call('ZREM', later, unpack(ids))
  if redis.call('EXISTS', mail) == 0 then redis.call('DEL', bell) end
  return gone
end
