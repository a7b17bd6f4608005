-- Delete all messages. ARGV: 1 to delete dead letters too, 2 to remove the mailbox.
-- KEYS after those of the mailbox are the keys that `repair` has moved.
-- Returns the number of messages.
local GONE_LASTS = 86400000
local held = redis.call('HLEN', mail)
redis.call('UNLINK', ready, later, mail, leases, bell)
if ARGV[1] ~= '0' then redis.call('UNLINK', dead, unpack(KEYS, 8)) end
if ARGV[1] == '2' then redis.call('SET', gone, '1', 'PX', GONE_LASTS) end
return held
