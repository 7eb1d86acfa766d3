-- batch-run: applies the entries in order, then writes what they share. Last part of the batch script.
--
-- An entry begins with '<letter><rest>'; how many more arguments it has depends on the letter. An entry that fails
-- answers '!<message>' and changes nothing: what can fail in a transition comes before what it changes.
-- The common cases stand first and are written out here, because calls and closures are what a script costs.
local at, lines, next_check, looked_up = 7 + count + checks, {}, 0, count - quiet
local general
for k = 1, count do
  local step = 1
  local entry = ARGV[at]
  local letter, rest, record = byte(entry), sub(entry, 2), recorded[k + 1]
  local line
  if letter == 84 or letter == 73 or letter == 105 or letter == 60 or letter == 63 or letter == 95 then -- T, I, <, ?: take
    local fresh = true
    if letter ~= 84 and letter ~= 60 then
      next_check = next_check + 1
      local stamp = traced[looked_up + next_check] or old_trace(looked_up + next_check)
      fresh = not (stamp and is_fresh(stamp))
    end
    if fresh and letter < 90 and not record and own_life > 0 then
      -- Nobody holds the chat, and nothing else in this batch concerns it: the same as grant().
      local chat = ARGV[6 + k]
      local trace = traced[k - quiet] or old_trace(k - quiet)
      if letter < 73 then
        line = take_reading(chat, trace, rest, 'r')
      elseif trace and not find(trace, 'P ', 1, true) or not trace and call('EXISTS', base .. 'c:' .. chat) == 0 then
        local fence = next_fence(trace)
        set[set_n + 1], set[set_n + 2] = chat, fence .. ticket_stem .. rest
        set_n = set_n + 2
        held[held_n + 1], held[held_n + 2] = fence, chat
        held_n = held_n + 2
        line = trace and 'G' .. fence .. ' |' .. trace or 'G' .. fence .. ' |'
      end
    end
  elseif letter == 82 then -- R: release
    if record and find(record, rest, 1, true) == 1 and not find(record, '|', 1, true) then
      -- The current grant, nobody waits, nothing else in this batch concerns the chat.
      local chat = ARGV[6 + k]
      let_go_n, gone_n = let_go_n + 1, gone_n + 1
      let_go[let_go_n], gone[gone_n] = rest, chat
      ended[ended_n + 1], ended[ended_n + 2] = chat, rest .. trace_end
      ended_n = ended_n + 2
      line = 'R'
    end
  elseif letter == 67 or letter == 78 then -- C, N: release with a committed id, with a note
    -- Up to the space: a pattern costs several times as much.
    local fence = sub(rest, 1, (find(rest, ' ', 1, true) or 0) - 1)
    if record and fence ~= '' and find(record, fence, 1, true) == 1 and not find(record, '|', 1, true) and (letter == 78 or own_life > 0) then
      local chat = ARGV[6 + k]
      let_go_n, gone_n = let_go_n + 1, gone_n + 1
      let_go[let_go_n], gone[gone_n] = fence, chat
      ended[ended_n + 1], ended[ended_n + 2] = chat, rest .. ' ' .. session
      ended_n = ended_n + 2
      if letter == 67 then
        at = at + 1
        ended[ended_n + 1], ended[ended_n + 2] = ARGV[at], stamp_stem .. fence
        ended_n = ended_n + 2
      end
      line = 'R'
    end
  elseif letter == 65 then -- A: take with more
    local fresh = true
    if find(ARGV[at + 1], 'i', 1, true) then
      local stamp = traced[looked_up + next_check + 1] or old_trace(looked_up + next_check + 1)
      fresh = not (stamp and is_fresh(stamp))
    end
    if fresh and not record and own_life > 0 and ARGV[at + 4] == '' and ARGV[at + 5] == '' then
      line = take_reading(ARGV[6 + k], traced[k - quiet] or old_trace(k - quiet), rest, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
    end
    if line then
      if find(ARGV[at + 1], 'i', 1, true) then next_check = next_check + 1 end
      step = 6
    end
  elseif letter == 76 then -- L: commit of a plain checkpoint
    if record and own_life > 0 and find(record, match(rest, '^%d+'), 1, true) == 1 and not find(record, '|', 1, true) then
      line = commit_plain(k, at, rest)
      step = 4
    end
  elseif letter == 68 then -- D: commit of a checkpoint
    if record and own_life > 0 and find(record, match(rest, '^%d+ '), 1, true) == 1 and not find(record, 'W', find(record, '|', 1, true) or -1, true) then
      line = commit_checkpoint(k, at, rest, record)
      step = 8
    end
  end
  if line then
    at = at + step
  else
    if not general then general = everything() end
    line, at = general(k, at, letter, rest, next_check)
    if (letter == 65 or letter == 97) and find(ARGV[at - 5], 'i', 1, true) then next_check = next_check + 1 end
  end
  lines[k] = line
end

-- Adds a map's new values and removals to the lists that the fast paths filled.
local function merge(map, list, n, removed, removed_n)
  for field, value in pairs(map) do
    if value then
      list[n + 1], list[n + 2] = field, value
      n = n + 2
    else
      removed_n = removed_n + 1
      removed[removed_n] = field
    end
  end
  return n, removed_n
end
if general then
  write_pending()
  set_n, gone_n = merge(changed, set, set_n, gone, gone_n)
  ended_n = merge(traces, ended, ended_n)
  ended_n = merge(ids, ended, ended_n)
  for of, news in pairs(pushes) do redis.pcall('PUBLISH', base .. 'g:' .. of, table.concat(news, '\n')) end
  for i = 1, #own_news do lines[#lines + 1] = own_news[i] end
end
if fence_tail then
  set[set_n + 1], set[set_n + 2] = ' floor', fence_stem .. sub(HUNDRED, 2 * fence_tail + 1, 2 * fence_tail + 2)
  set_n = set_n + 2
end
-- HSET takes as many fields as a script can unpack; the sender's bounds keep all lists below it.
if set_n > 0 then call('HSET', KEYS[1], unpack(set, 1, set_n)) end
if gone_n > 0 then call('HDEL', KEYS[1], unpack(gone, 1, gone_n)) end
if ended_n > 0 then call('HSET', window, unpack(ended, 1, ended_n)) end
if held_n > 0 then call('HSET', base .. 'h:' .. session, unpack(held, 1, held_n)) end
if let_go_n > 0 then call('HDEL', base .. 'h:' .. session, unpack(let_go, 1, let_go_n)) end
payloads[1] = table.concat(lines, '\n')
-- An array costs the call of one entry more than two commands.
if count == 1 and not payloads[2] then return payloads[1] end
return payloads
