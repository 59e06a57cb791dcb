# Submits a job by a client that was generated from /openapi-3.0.json, and reads it back.
import sys

import openapi_client

configuration = openapi_client.Configuration(host=sys.argv[1])
jobs = openapi_client.JobsApi(openapi_client.ApiClient(configuration))
job = {
    "name": "from-python",
    "request": {
        "resources": {"cpus": 1, "cpuMemoryGb": 1, "gpus": 0},
        "docker": {"image": "none", "command": "true"},
    },
}
done = jobs.submit_job(openapi_client.SubmitRequest(project="default", job=job, hold=True))
shown = jobs.get_job(str(done.number))
print(shown.name, shown.state)
