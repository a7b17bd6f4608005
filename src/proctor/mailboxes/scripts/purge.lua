-- Drop all messages. ARGV: 1 if the dead letters go too, 2 if the mailbox goes for good.
-- KEYS after those of the mailbox are what `repair` has moved aside.
-- Gives how many messages there were.
local GONE_LASTS = 86400000
local held = redis.call('HLEN', mail)
redis.call('UNLINK', ready, later, mail, leases, bell)
if ARGV[1] ~= '0' then redis.call('UNLINK', dead, unpack(KEYS, 8)) end
if ARGV[1] == '2' then redis.call('SET', gone, '1', 'PX', GONE_LASTS) end
return held
