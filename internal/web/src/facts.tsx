import type { ComponentChildren } from 'preact'
import type * as api from './api'
import { Time, bytes, duration } from './words'

// Facts is what was asked for, where it is, and what of it is used.
export function Facts(props: { job: api.JobDetail }) {
  const j = props.job
  const u = j.used
  const live = (j.attempts ?? []).at(-1)?.ranks ?? []
  return (
    <dl class="facts">
      <Fact name="User">{j.user}</Fact>
      <Fact name="Project">{j.project}</Fact>
      <Fact name="Submitted">
        <Time at={j.submitted} />
      </Fact>
      <Fact name="Image">{j.spec?.request?.docker?.image}</Fact>
      <Fact name="GPUs">{j.gpus || ''}</Fact>
      <Fact name="CPUs">{j.cpus ? j.cpus + usedCPUs(j) : ''}</Fact>
      <Fact name="Memory">{j.memBytes ? bytes(j.memBytes) + (u?.peakMemBytes ? `, at most ${bytes(u.peakMemBytes)} used` : '') : ''}</Fact>
      <Fact name="Time limit">{j.limitS ? duration(j.limitS) + (j.limitMinS ? `, or less to start sooner, ${duration(j.limitMinS)} at least` : '') : ''}</Fact>
      <Fact name="Nodes">{(j.nodes ?? []).join(', ')}</Fact>
      <Fact name="Class">{j.qos}</Fact>
      <Fact name="Progress">{j.progress}</Fact>
      <Fact name="Billed">{u?.billedHours ? u.billedHours.toFixed(2) + ' GPU hours' : ''}</Fact>
      <Fact name="Tries">{(j.attempts ?? []).length > 1 ? j.attempts!.length : ''}</Fact>
      <Fact name="Ports">{live.flatMap((r) => (r.ports ?? []).map((p) => `${r.node}:${p.hostPort}`)).join(', ')}</Fact>
    </dl>
  )
}

function usedCPUs(j: api.JobDetail): string {
  const u = j.used
  return u && u.elapsedS > 0 && u.cpuTimeS > 0 ? `, ${(u.cpuTimeS / u.elapsedS).toFixed(1)} busy on average` : ''
}

// Fact is a name and what it is; nothing where there is nothing to say.
export function Fact(props: { name: string; children: ComponentChildren }) {
  if (props.children === undefined || props.children === null || props.children === '') return null
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  )
}
