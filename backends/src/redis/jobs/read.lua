-- ARGV: ids. Returns the fields of each job.
local jobs = {}
for i = 3, #ARGV do
  jobs[#jobs + 1] = fields_of(ARGV[i])
end
return jobs
