-- store-state: a chat's state for turns that live in another backend, and for bots without coordination.
--
-- Entry 'J<ms>', message id, record or ''   notes an arrival. Reply '+' new, '=' known
--       'O<fence>', 'j' or ''               reads and raises the store's fence of this chat (I4).
--                                           Reply 'O<revision>|<marks>', or 'o' if a higher fence is known
--       'P<fence>', number of arguments that follow, then the effects (chat-state)
--                                           stores them if no higher fence is known (flag u: whatever is known).
--                                           Reply as commit: 'K<more> <revision>', 'ks'
-- Idempotent: a record by its id, effects by the commit's name. Invariants: I4, I5.

local function fence_known(chat, k)
  local highest = tonumber(call('HGET', base .. 'c:' .. chat, 'f') or 0) or 0
  local record, trace = record_of(k, chat), trace_of(chat)
  for _, line in ipairs({ record or '', trace or '' }) do
    local fence = tonumber(match(line, '^%d+'))
    if fence and fence > highest then highest = fence end
  end
  return highest
end

-- From now on grants of this chat look for its row.
local function note_row(chat, k)
  local record = record_of(k, chat)
  if record then flag_record(chat, record, 'P') end
  local trace = trace_of(chat)
  if trace then traces[chat] = match(trace, '^%d+ %d+') .. 'P' .. match(trace, ' %S*$') end
end

local function note_arrival(k, ms, at)
  local chat = ARGV[7 + k]
  return arrive(chat, ARGV[at], ms, ARGV[at + 1])
end

local function open_state(k, fence, at)
  local chat = ARGV[7 + k]
  local row = base .. 'c:' .. chat
  if fence_known(chat, k) > tonumber(fence) then return 'o' end
  call('HSET', row, 'f', fence)
  expire_row(row)
  local revision, marks = read_state(chat, true, ARGV[at] == 'j')
  return 'O' .. revision .. '|' .. marks
end

local function commit_state(k, fence, at)
  local chat = ARGV[7 + k]
  local receipt = chat .. ' #' .. ARGV[at + 1]
  local stamp = stamp_of(receipt)
  if stamp then return 'K- ' .. match(stamp, '^%d+:%d*:(.*)$') end
  local free = find(ARGV[at], 'u', 1, true)
  if not free and fence_known(chat, k) > tonumber(fence) then return 'ks' end
  local revision, more, has_row = apply_effects(chat, fence, at, stamp_stem .. fence)
  if not revision then return 'ks' end
  if has_row then note_row(chat, k) end
  if not free then ids[receipt] = stamp_stem .. fence .. ':' .. revision end
  return 'K' .. more .. ' ' .. revision
end
