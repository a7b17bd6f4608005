-- Move keys of another type aside, so that the mailbox works again. KEYS: the mailbox's own, then one
-- for each where it is moved to. Each is noted as a dead letter. Gives how many there were.
local TYPES = {'list', 'zset', 'hash', 'hash', 'list', 'stream'}
local moved = {}
for place, type in ipairs(TYPES) do
  local key, aside = KEYS[place], KEYS[#TYPES + 1 + place]
  local actual = redis.call('TYPE', key)['ok']
  if actual ~= 'none' and actual ~= type then
    redis.call('RENAME', key, aside)
    moved[#moved + 1] = {
      id = 'key-' .. place,
      reason = 'unreadable: the key ' .. key .. ' was a ' .. actual .. ' instead of a ' .. type ..
        '; it was renamed to ' .. aside
    }
  end
end
for _, one in ipairs(moved) do bury('', 0, '', one.reason, one.id) end
return #moved
