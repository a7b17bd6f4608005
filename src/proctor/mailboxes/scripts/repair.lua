-- Rename keys of a wrong type, so that the mailbox works again. KEYS: those of the mailbox, then an equal
-- number of new names for each. The first free name is used, so that nothing is overwritten. Each renamed
-- key becomes a dead letter. Returns how many there were.
local TYPES = {'list', 'zset', 'hash', 'hash', 'list', 'stream'}
local OWN = #TYPES + 1
local names_per_key = (#KEYS - OWN) / #TYPES
local moved = {}

local function move_aside(place)
  for attempt = 1, names_per_key do
    local name = KEYS[OWN + (place - 1) * names_per_key + attempt]
    if redis.call('RENAMENX', KEYS[place], name) == 1 then return name end
  end
  return nil
end

for place, type in ipairs(TYPES) do
  local key = KEYS[place]
  local actual = redis.call('TYPE', key)['ok']
  if actual ~= 'none' and actual ~= type then
    local name = move_aside(place)
    if not name then
      return redis.error_reply(
        'the key ' .. key .. ' is a ' .. actual .. ' instead of a ' .. type .. ', and all ' ..
        names_per_key .. ' names to move it to are taken; delete or rename the keys ' ..
        KEYS[OWN + (place - 1) * names_per_key + 1] .. '*'
      )
    end
    moved[#moved + 1] = {
      id = 'key-' .. place,
      reason = 'unreadable: the key ' .. key .. ' was a ' .. actual .. ' instead of a ' .. type ..
        '; it was renamed to ' .. name
    }
  end
end
for _, one in ipairs(moved) do bury('', 0, '', one.reason, one.id) end
return #moved
