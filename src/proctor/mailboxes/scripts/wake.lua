-- Wake the waiting receivers of one object. KEYS: its bell. ARGV: how many they are.
for _ = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[1], '1') end
return redis.call('PEXPIRE', KEYS[1], 60000)
