-- short-cuts: the common cases of a take that reads and of a commit that stores a checkpoint, for the batch's main loop.
-- They decide what take and commit decide; whatever is not a common case is left to those, with nothing written.
-- KEYS and ARGV as batch-context says.
--
-- Reply  the lines of take ('<', '?', 'A') and of commit ('L', 'D')
-- Invariants: I1, I3, I6 (nobody holds the chat); I5, I12 (the grant is the current one, and nobody waits).

local protected = redis.pcall

-- Makes the checkpoint's appointment, `after` ms from now, or ends the one that it has.
local function appoint(chat, row, after)
  if after then
    local at = format('%.0f', now_ms + tonumber(after))
    call('HSET', row, 'w', at)
    call('ZADD', base .. 'wakes', at, chat)
  else
    call('HDEL', row, 'w')
    call('ZREM', base .. 'wakes', chat)
  end
end

-- Compares the revision and stores a checkpoint. Returns the chat's new flag for notes, or nil if another revision is
-- there. `trace` may be nil: then the row is looked at.
local function store_checkpoint(chat, trace, fence, expected, new, json, ttl, kept, wake)
  local row = base .. 'c:' .. chat
  local flag, known
  if trace then flag, known = match(trace, '^%d+ %d+([-S])(%S*)') end
  if flag and ttl == '' and wake == '' and kept == '' then
    -- All that the row has is known, so it need not be read.
    if known ~= expected then return nil end
    call('HSET', row, 'c', json, 'r', new, 'x', 'P', 'f', fence)
    return 'S' .. new
  end
  local now = call('HMGET', row, 'r', 'x', 'y', 'w')
  local revision = told_revision(now[1]) or ''
  if revision ~= expected and revision ~= new then
    local alive = now[2] and (now[2] == 'P' or (tonumber(now[2]) or math.huge) > now_ms)
    if expected ~= '' or alive then return nil end
  end
  local expires = ttl == '' and 'P' or format('%.0f', now_ms + tonumber(ttl))
  call('HSET', row, 'c', json, 'r', new, 'x', expires, 'f', fence, 'n', kept)
  if wake ~= '' then
    appoint(chat, row, wake)
  elseif now[4] then
    appoint(chat, row)
  end
  if expires == 'P' or now[3] == 'P' then
    if now[2] ~= 'P' then call('PERSIST', row) end
  else
    local ms = math.max(WINDOW_MS, tonumber(ttl), (tonumber(now[3]) or 0) - now_ms)
    call('PEXPIRE', row, format('%.0f', ms))
  end
  return expires == 'P' and wake == '' and kept == '' and not now[3] and 'S' .. new or 'P'
end

-- What the grant of a chat that nobody holds tells of its row, and whether the checkpoint is among it.
-- Returns the revision, letters for the payloads that it added, and what is told as the trace; nil if it is unreadable.
local function read_row(chat, trace, reads)
  if trace and find(trace, '^%d+ %d+S') then
    -- The note says the revision.
    if not reads then return '', '', trace end
    local json = protected('HGET', base .. 'c:' .. chat, 'c')
    if not json or type(json) == 'table' then return nil end
    payloads[#payloads + 1] = json
    return '', 'c', trace
  end
  if trace and not find(trace, 'P ', 1, true) then return '', '', trace end
  local row = protected('HMGET', base .. 'c:' .. chat, 'r', 'x', 'c', 'm', 'y', 'w')
  if row.err then return nil end
  local revision, read = '', ''
  if row[1] or row[4] then
    local expired = row[2] and row[2] ~= 'P' and (tonumber(row[2]) or math.huge) <= now_ms
    if row[1] and not expired then revision = told_revision(row[1]) end
    if reads and row[3] and not expired then
      payloads[#payloads + 1] = row[3]
      read = 'c'
      if row[6] then
        payloads[#payloads + 1] = format('%.0f', (tonumber(row[6]) or now_ms) - now_ms)
        read = 'cw'
      end
    end
    if reads and row[4] and not (row[5] and row[5] ~= 'P' and (tonumber(row[5]) or math.huge) <= now_ms) then
      payloads[#payloads + 1] = row[4]
      read = read .. 'm'
    end
  end
  return revision, read, trace or call('EXISTS', base .. 'c:' .. chat) == 1 and '0 0P ' or ''
end

-- A take of a chat that nobody holds; flags and arrival as take.lua says for 'A'. Returns nil if it is no common case.
local function take_reading(chat, trace, n, flags, arrived, ms)
  if find(flags, 'j', 1, true) then return nil end
  local reads = find(flags, 'r', 1, true)
  local revision, read, told = read_row(chat, trace, reads)
  if not revision then return nil end
  local fence = next_fence(trace)
  set[set_n + 1], set[set_n + 2] = chat, fence .. ticket_stem .. n
  set_n = set_n + 2
  held[held_n + 1], held[held_n + 2] = fence, chat
  held_n = held_n + 2
  local marks = '|'
  if arrived and arrived ~= '' then
    ended[ended_n + 1], ended[ended_n + 2] = chat .. ' ', ms .. ' ' .. arrived
    ended_n = ended_n + 2
    marks = '|+'
  end
  if reads then marks = marks .. 'r' end
  return 'G' .. fence .. ' ' .. revision .. '|' .. told .. marks .. read
end

-- A commit as commit.lua says for 'L', by the current holder, under whose turn nothing else was written to the row, with
-- nobody waiting. Returns nil if the row cannot be written.
local function commit_plain(k, at, rest)
  local chat, new = ARGV[6 + k], ARGV[at + 2]
  local fence, ids, flag = match(rest, '^(%d+)( %d+)(.)')
  local ok
  if flag == 'S' then
    ok = protected('HSET', base .. 'c:' .. chat, 'c', ARGV[at + 3], 'r', new, 'f', fence)
  else
    ok = protected('HSET', base .. 'c:' .. chat, 'c', ARGV[at + 3], 'r', new, 'f', fence, 'x', 'P')
  end
  if type(ok) == 'table' then return nil end
  let_go_n, gone_n = let_go_n + 1, gone_n + 1
  let_go[let_go_n], gone[gone_n] = fence, chat
  ended[ended_n + 1], ended[ended_n + 2] = chat, fence .. ids .. 'S' .. new .. ' ' .. session
  ended[ended_n + 3], ended[ended_n + 4] = ARGV[at + 1], stamp_stem .. fence .. ':' .. new
  ended_n = ended_n + 4
  return 'R'
end

-- A commit as commit.lua says for 'D', by the current holder, with nobody waiting. Returns nil if the row is unreadable.
local function commit_checkpoint(k, at, rest, record)
  local chat, fence, new = ARGV[6 + k], match(rest, '^%d+'), ARGV[at + 3]
  -- A flag in the record says that the row was written during this turn: then the trace does not know it.
  local trace = not find(record, '|', 1, true) and (traced[k - quiet] or old_trace(k - quiet)) or nil
  local ok, flag = pcall(
    store_checkpoint, chat, trace, fence, ARGV[at + 2], new, ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
  )
  if not ok then return nil end
  if not flag then return 'ks' end
  let_go_n, gone_n = let_go_n + 1, gone_n + 1
  let_go[let_go_n], gone[gone_n] = fence, chat
  ended[ended_n + 1], ended[ended_n + 2] = chat, match(rest, '^%d+ %d+') .. flag .. ' ' .. session
  ended[ended_n + 3], ended[ended_n + 4] = ARGV[at + 1], stamp_stem .. fence .. ':' .. new
  ended_n = ended_n + 4
  return 'K- ' .. new
end
