-- For sites without a job_submit.lua of their own; goes beside slurm.conf, with slurmk8s.lua and slurmk8s_facts.lua.
-- A site that has one calls the module from it instead: see the head of slurmk8s.lua.

local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local slurmk8s = dofile(folder .. "/slurmk8s.lua")

function slurm_job_submit(job_desc, part_list, submit_uid)
	return slurmk8s.stamp(job_desc, part_list, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	return slurmk8s.keep(job_desc, job_rec, modify_uid)
end

return slurm.SUCCESS
