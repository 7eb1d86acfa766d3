-- store-state: a chat's state for turns that live in another backend, and for bots without coordination.
--
-- Entry 'J<ms>', message id, record or ''   notes an arrival. Reply '+' new, '=' known
--       'O<fence>', 'j' or ''               reads and raises the store's fence of this chat (I5).
--                                           Reply 'O<revision>|<marks>', or 'o' if a higher fence is known
--       'P<fence>', number of arguments that follow, then the effects (chat-state)
--                                           stores them if no higher fence is known ('' with flag u: whatever is known).
--                                           Reply as commit: 'K<more> <revision>', 'ks'
--       'G'                                 reads only. Reply 'O<revision>|<marks>'
--       'M<inbound id>'                     Reply 'M1' if an effect of it is committed, else 'M0'
--       'F<what>', name                     moves a damaged value aside. Reply 'F'
-- Idempotent: a record by its id, effects by the commit's name. Invariants: I5, I12.

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

local function raise_fence(k, fence)
  local chat = ARGV[6 + k]
  local row = base .. 'c:' .. chat
  call('HSET', row, 'f', fence)
  expire_row(row)
  note_row(chat, k)
end

local function note_arrival(k, ms, at)
  local chat = ARGV[6 + k]
  return arrive(chat, ARGV[at], ms, ARGV[at + 1])
end

local function open_state(k, fence, at)
  local chat = ARGV[6 + k]
  if fence_known(chat, k) > tonumber(fence) then return 'o' end
  raise_fence(k, fence)
  local revision, marks = read_state(chat, true, ARGV[at] == 'j')
  return 'O' .. revision .. '|' .. marks
end

local function commit_state(k, fence, at)
  local chat = ARGV[6 + k]
  local receipt = chat .. ' #' .. ARGV[at + 1]
  local stamp = stamp_of(receipt)
  if stamp then return 'K- ' .. match(stamp, '^%d+:%d*:(.*)$') end
  local free = find(ARGV[at], 'u', 1, true)
  if not free and fence_known(chat, k) > tonumber(fence) then return 'ks' end
  local revision, more, has_row = apply_effects(chat, fence, at, stamp_stem .. fence)
  if not revision then return 'ks' end
  if has_row then note_row(chat, k) end
  if not free then
    ids[receipt] = stamp_stem .. fence .. ':' .. revision
    raise_fence(k, fence)
  end
  return 'K' .. more .. ' ' .. revision
end

local function read_only(k)
  local revision, marks = read_state(ARGV[6 + k], true, false)
  return 'O' .. revision .. '|' .. marks
end

local function tell_committed(k, id)
  local stamp = stamp_of(ARGV[6 + k] .. ' ' .. id)
  return stamp and match(stamp, '^%d+:(%d+)') ~= '0' and 'M1' or 'M0'
end

-- Nothing can be done with it, and nobody shall stumble over it again: kept for a look, out of the way.
local function move_aside(k, what, name)
  local chat = ARGV[6 + k]
  local row, outbox = base .. 'c:' .. chat, base .. 'o:' .. chat
  local from = what == 'outbox' and outbox or row
  local field = what == 'checkpoint' and 'c' or what == 'marker' and 'm' or name
  local value = call('HGET', from, field)
  if not value then return 'F' end
  note_row(chat, k)
  call('HDEL', from, field)
  if what == 'checkpoint' then
    call('HDEL', row, 'x', 'n')
    appoint(chat, row)
  end
  if what == 'marker' then call('HDEL', row, 'y') end
  call('HSET', base .. 'damaged', what .. ' ' .. chat .. ' ' .. name .. ' ' .. format('%.0f', now_ms), value)
  return 'F'
end
