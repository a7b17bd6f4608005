-- Count the messages: waiting, delayed and in flight.
return redis.call('HLEN', mail)
