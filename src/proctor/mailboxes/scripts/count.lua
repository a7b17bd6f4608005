-- How many there are: waiting, delayed and in flight.
return redis.call('HLEN', mail)
