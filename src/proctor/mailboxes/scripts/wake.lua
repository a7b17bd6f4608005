-- Ring for those who wait in one object: KEYS, its own bell. ARGV: how many they are.
for _ = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[1], '1') end
return redis.call('PEXPIRE', KEYS[1], 60000)
