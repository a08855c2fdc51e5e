-- slurmk8s: which batch jobs run in a container, decided when they are submitted.
--
-- A script with #K8S_ lines before its first command, or for a partition with a default image, is *stamped*:
--   admin_comment  the #K8S_ lines, percent-encoded (users cannot set or change it); the node's agent interprets them
--   comment        the person's own, then the word `slurmk8s`, by which the Prolog knows the job
--   script         `#!/bin/bash -l` becomes `#!/…/slurmk8s-run /bin/bash -l`
-- Everything else is left as it is.
--
-- To call it from your own job_submit.lua, last, when the partition is settled:
--   local slurmk8s = dofile("/etc/slurm/slurmk8s.lua")
--   in slurm_job_submit:  return slurmk8s.stamp(job_desc, part_list, submit_uid)
--   in slurm_job_modify:  return slurmk8s.keep(job_desc, job_rec, modify_uid)
--
-- slurmctld calls this under its locks, one job at a time: no file is read and no program run after loading. The site's
-- facts come from slurmk8s_facts.lua beside this file (written by `slurmk8s slurm-conf lua`). slurmctld loads everything
-- anew when job_submit.lua has a new date: `touch` it after a change. Written for Lua 5.1 to 5.4.

local M = {}

local STAMP = "slurmk8s/1:"
local MARKER = "slurmk8s"
local NAMES = { IMAGE = true, WORKDIR = true, SCRIPT = true, PRIORITY = true, SHM = true, MOUNT = true }
local NAME_LIST = "#K8S_IMAGE, #K8S_WORKDIR, #K8S_SCRIPT, #K8S_PRIORITY, #K8S_SHM and #K8S_MOUNT"
local COMMENT_LIMIT = 1024 -- bytes that slurmctld takes
local SHEBANG_LIMIT = 127 -- bytes of a #! line that every kernel reads (since 5.1 it is 255; the nodes may be older)

local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local facts = dofile(folder .. "/slurmk8s_facts.lua")

-- Refusals are Lua errors with a table, so that a mistake in this file (an error with a text) is told apart.
local function refuse(sentence)
	error({ sentence = sentence }, 0)
end

-- No pattern here may look at the same characters twice: `%s+$` takes minutes on a line of spaces, and slurmctld waits.
local function trim(text)
	local last = #text
	while last > 0 and text:find("^%s", last) do
		last = last - 1
	end
	return text:sub(text:find("%S") or 1, last)
end

-- What a refusal repeats of a person's text.
local function shown(text)
	return #text > 80 and text:sub(1, 80) .. "…" or text
end

local function has_word(text, word)
	return (" " .. text .. " "):find(" " .. word .. " ", 1, true) ~= nil
end

local function starts_with(text, start)
	return text:sub(1, #start) == start
end

-- One word without space, `=` or quote, whatever the lines hold: scontrol prints an admin_comment as it is.
local function encoded(lines)
	return (table.concat(lines, "\n"):gsub("[^%w_.~/:@-]", function(byte)
		return string.format("%%%02X", byte:byte())
	end))
end

-- The #K8S_ lines before the first command, found as sbatch finds #SBATCH lines: blank lines and comments, also
-- indented ones, do not end them.
local function header(script)
	local lines, at, number = {}, 1, 0
	while at <= #script do
		local stop = script:find("\n", at, true) or #script + 1
		local line = script:sub(at, stop - 1)
		number = number + 1
		if starts_with(line, "#K8S_") then
			lines[#lines + 1] = { number = number, text = line }
		elseif line:find("^%s*[^%s#]") then
			break
		end
		at = stop + 1
	end
	return lines
end

-- The value of a line, without a remark behind it and without quotes around it.
local function value_of(text)
	local value = text:match("^#K8S_[^%s=]*%s*=(.*)$")
	if value == nil then
		return nil
	end
	value = trim(value)
	if starts_with(value, "#") then
		return nil
	end
	local remark = value:find("%s#")
	value = trim(remark and value:sub(1, remark - 1) or value)
	local quoted = value:match('^"(.+)"$') or value:match("^'(.+)'$")
	value = quoted or value
	return value ~= "" and value or nil
end

-- `pytorch:2.0` and `team/pytorch` mean the site's registry; a first part that looks like a host is one, as for docker.
local function qualified(image)
	local first = image:match("^([^/]*)/")
	if first and (first == "localhost" or first:find("[.:%[]") or first ~= first:lower()) then
		return image
	end
	return facts.registry .. "/" .. image
end

-- Cut at a boundary: `hub:5407` does not allow `hub:54070/x`.
local function allowed(image)
	for _, prefix in ipairs(facts.allowed) do
		if prefix ~= "" and starts_with(image, prefix) then
			local following = image:sub(#prefix + 1, #prefix + 1)
			if prefix:find("[/:@]$") or following == "" or following:find("^[/:@]") then
				return true
			end
		end
	end
	return false
end

local function check_lines(lines, default)
	local seen = {}
	for _, line in ipairs(lines) do
		local where = "line " .. line.number .. ": "
		local name = line.text:match("^#K8S_([^%s=]*)")
		if not NAMES[name] then
			refuse(where .. "there is no #K8S_" .. shown(name) .. "; the lines are " .. NAME_LIST .. ".")
		end
		if seen[name] then
			refuse(where .. "#K8S_" .. name .. " stands twice; remove one of them.")
		end
		local value = value_of(line.text)
		if value == nil then
			refuse(where .. "#K8S_" .. name .. " has no value; write #K8S_" .. name .. "=value.")
		end
		seen[name] = value
		if name == "IMAGE" then
			if not value:find("^[%w._:/@%[%]-]+$") then
				refuse(where .. "'" .. shown(value) .. "' is not an image; write registry/name:tag.")
			end
			local image = qualified(value)
			if not (default and image == qualified(default)) and not allowed(image) then
				local places = table.concat(facts.allowed, ", ")
				refuse(where .. shown(image) .. " may not be used here; images must come from " .. places .. ".")
			end
		end
	end
	return seen
end

-- The default image of the partition the job asks for, or of the default partition. A job that names several starts in
-- any of them, so they must agree.
local function default_image(job_desc, part_list)
	local asked = job_desc.partition
	if asked == nil or asked == "" then
		for name, part in pairs(part_list) do
			if part.flag_default == 1 then
				return facts.images[name], true
			end
		end
		return nil, true
	end
	local image, first, agreed = nil, true, true
	for name in asked:gmatch("[^,]+") do
		if first then
			image, first = facts.images[name], false
		elseif facts.images[name] ~= image then
			agreed = false
		end
	end
	return image, agreed
end

-- The script with slurmk8s-run in front of its interpreter. The kernel hands everything behind the first word to
-- slurmk8s-run as one argument, as it did to the interpreter before, so `-l` and `env -S …` keep their meaning.
local function wrapped(script)
	local line = script:match("^[^\n]*")
	local interpreter = trim(line:match("^#!(.*)$") or "")
	if interpreter == "" then
		refuse("line 1: the script names no interpreter; write #!/bin/bash.")
	end
	if starts_with(interpreter, facts.run .. " ") then
		return script -- copied from Slurm's spool, or written so
	end
	local new = "#!" .. facts.run .. " " .. interpreter
	if #new > SHEBANG_LIMIT then
		local most = SHEBANG_LIMIT - #facts.run - 3
		refuse("line 1: the interpreter has " .. #interpreter .. " characters and the kernel takes " .. most
			.. "; write #!/usr/bin/env followed by its name, or a shorter path.")
	end
	return new .. script:sub(#line + 1)
end

-- What a field says; 0 where it is not set, which Slurm writes as nil or as one of the largest numbers of its type.
local function amount(value, not_set)
	return type(value) == "number" and value > 0 and value < (not_set or slurm.NO_VAL) and value or 0
end

-- `gres:gpu:tesla:2,gres:lustre:1` → 2; newer releases write `gres/gpu:2`.
local function gpus_in(text)
	local total = 0
	for item in (text or ""):gmatch("[^,]+") do
		local kind = item:gsub("^gres[:/]", ""):match("^gpu(.*)$")
		if kind == "" or kind and kind:find("^[:=]") then
			total = total + (tonumber(kind:match("[:=](%d+)$")) or 1)
		end
	end
	return total
end

-- A job that alone asks for more than its person may hold could never start. What Slurm adds by itself (default memory,
-- whole nodes) is not known yet; the node's agent counts again.
local function check_limits(job_desc)
	-- Facts that an earlier release wrote have none.
	local limits = (facts.other_limits or {})[job_desc.user_id] or facts.limits or {}
	local nodes = math.max(amount(job_desc.min_nodes), 1)
	local tasks = math.max(amount(job_desc.num_tasks), 1)
	local cpus = math.max(amount(job_desc.min_cpus), tasks * math.max(amount(job_desc.cpus_per_task, slurm.NO_VAL16), 1))
	local gpus = math.max(
		gpus_in(job_desc.tres_per_job),
		gpus_in(job_desc.tres_per_node) * nodes,
		gpus_in(job_desc.tres_per_task) * tasks
	)
	local memory = math.max(amount(job_desc.min_mem_per_node) * nodes, amount(job_desc.min_mem_per_cpu) * cpus)
	local asked, allowed = {}, {}
	for _, each in ipairs({
		{ cpus, limits.cpus, "%d CPUs" },
		{ memory, limits.memory_mb, "%dM of memory" },
		{ gpus, limits.gpus, "%d GPUs" },
	}) do
		if each[2] and each[1] > each[2] then
			asked[#asked + 1] = string.format(each[3], each[1])
			allowed[#allowed + 1] = string.format(each[3], each[2])
		end
	end
	if #asked > 0 then
		refuse("the job asks for " .. table.concat(asked, " and ") .. ", and one person may hold "
			.. table.concat(allowed, " and ") .. " at the same time; ask for less, or ask the admins for a larger quota.")
	end
end

local function with_words(comment, words)
	for _, word in ipairs(words) do
		if not has_word(comment, word) then
			comment = comment == "" and word or comment .. " " .. word
		end
	end
	if #comment > COMMENT_LIMIT then
		refuse("the comment with slurmk8s's words has " .. #comment .. " bytes, and Slurm takes "
			.. COMMENT_LIMIT .. "; shorten --comment.")
	end
	return comment
end

local function stamp(job_desc, part_list)
	-- Only this file writes stamps. slurmctld refuses an admin_comment from users; root may set any other.
	if starts_with(job_desc.admin_comment or "", MARKER) then
		job_desc.admin_comment = ""
	end
	local script = job_desc.script
	if script == nil or script == "" then
		return -- salloc, or srun without a job
	end
	local lines = header(script)
	local default, agreed = default_image(job_desc, part_list)
	if #lines == 0 and default == nil and agreed then
		return -- a plain Slurm job
	end
	-- Only the first part of a heterogeneous job has the script, so the others would run without a container.
	if job_desc.het_job_offset ~= nil and job_desc.het_job_offset ~= slurm.NO_VAL then
		refuse("a heterogeneous job cannot run in containers; remove the hetjob line, or the #K8S_ lines.")
	end
	local seen = check_lines(lines, default)
	local texts = {}
	for _, line in ipairs(lines) do
		texts[#texts + 1] = line.text
	end
	if not seen.IMAGE then
		if not agreed then
			refuse("the partitions " .. job_desc.partition .. " have different default images; write #K8S_IMAGE=… or "
				.. "name one partition.")
		end
		if default == nil then
			refuse("line " .. lines[1].number .. ": the job has #K8S_ lines but names no image, and its partition has no "
				.. "default; write #K8S_IMAGE=" .. facts.registry .. "/… or remove the lines.")
		end
		texts[#texts + 1] = "#K8S_IMAGE=" .. default
	end
	check_limits(job_desc)
	local new_script = wrapped(script)
	local comment = with_words(job_desc.comment or "", { MARKER })
	job_desc.admin_comment = STAMP .. encoded(texts)
	job_desc.comment = comment
	if new_script ~= script then
		job_desc.script = new_script
	end
end

local function keep(job_desc, job_rec, modify_uid)
	local stamped = starts_with(job_rec.admin_comment or "", STAMP)
	local changed = job_desc.admin_comment
	if changed ~= nil and modify_uid ~= 0 and (stamped or starts_with(changed, MARKER)) then
		refuse("the admin comment of job " .. tostring(job_rec.job_id) .. " is slurmk8s's own; only root may change it.")
	end
	-- A person may change the comment; our words stay in it: the Prolog looks for one, the watcher for the other.
	if stamped and job_desc.comment ~= nil then
		local words = {}
		for word in (job_rec.comment or ""):gmatch("%S+") do
			if word:find("^slurmk8s%-key=%x+$") then
				words = { word } -- the last one is the watcher's
			end
		end
		words[#words + 1] = MARKER
		job_desc.comment = with_words(job_desc.comment, words)
	end
end

-- A refusal is told to the person. A mistake in this file must not pass a job unstamped: it is logged, and refused too.
local function answered(action, ...)
	local ok, fault = pcall(action, ...)
	if ok then
		return slurm.SUCCESS
	end
	if type(fault) == "table" then
		slurm.log_user("%s", "slurmk8s: " .. fault.sentence)
	else
		slurm.log_error("%s", "slurmk8s: " .. tostring(fault))
		slurm.log_user("%s", "slurmk8s: the job could not be judged; tell your administrator to look at slurmctld's log.")
	end
	return slurm.ERROR
end

function M.stamp(job_desc, part_list, submit_uid) -- luacheck: no unused args (Slurm's own signature)
	return answered(stamp, job_desc, part_list)
end

function M.keep(job_desc, job_rec, modify_uid)
	return answered(keep, job_desc, job_rec, modify_uid)
end

return M
