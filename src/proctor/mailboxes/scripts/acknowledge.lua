-- Delete handled messages. ARGV: "ID:RECEIPT" of each, separated by spaces, because one long argument
-- is faster than many short ones. Returns how many the caller held.
local ids, receipts, own = {}, {}, {}
for id, receipt in string.gmatch(ARGV[1], '(%w+):(%w+)') do
  ids[#ids + 1], receipts[#receipts + 1] = id, receipt
end
local held = redis.call('HMGET', leases, unpack(ids))
for place, id in ipairs(ids) do
  local receipt, till = read_lease(held[place])
  if receipt == receipts[place] and till > now then own[#own + 1] = id end
end
if #own == 0 then return 0 end
return forget(own)
