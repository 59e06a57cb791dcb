import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { argv: string[] };
const client = createClient<paths>({ baseUrl: process.argv[2] });

const { data, error } = await client.POST("/v1/jobs", {
  body: {
    project: "default",
    job: { name: "from-typescript", request: { resources: { cpus: 1, cpuMemoryGb: 1, gpus: 0 }, docker: { image: "none", command: "true" } } },
    hold: true,
  },
});
if (error || !data) throw new Error(JSON.stringify(error));
const shown = await client.GET("/v1/jobs/{id}", { params: { path: { id: String(data.number) } } });
if (shown.error || !shown.data) throw new Error(JSON.stringify(shown.error));
console.log(`${shown.data.name} ${shown.data.state}`);
