// The values of the API. Made from its description: go test ./internal/ctld -run TestAPITypes -rewrite

export type ActionRequest = {
  change?: JobChange
  cluster?: number
  count?: boolean
  ids?: Array<string> | null
  name?: string
  partition?: string
  priority?: number
  project?: string
  signal?: string
  state?: string
  user?: string
}

export type ActionResponse = {
  matched: number
  results?: Array<ActionResult> | null
}

export type ActionResult = {
  after?: string
  before?: string
  error?: Error
  id: string
  message?: string
  number?: number
}

export type Advice = {
  at?: string
  change: string
  code: string
  limitS?: number
  nodes?: Array<string> | null
  now: boolean
  resources?: Advised
  text: string
}

export type Advised = {
  clusterId?: number
  cpuMemoryGb?: number
  cpus?: number
  gpuModel?: Array<string> | null
  gpus?: number
}

export type Allocation = {
  cpus: number
  gpus?: Array<GPUShare> | null
  memBytes: number
  node: string
}

export type ArrayTask = {
  count: number
  first: number
  index: number
  last: number
  parent: number
  step?: number
}

export type Attempt = {
  attempt: number
  end?: string
  ranks: Array<Rank> | null
  start: string
  task: number
}

export type AuditEntry = {
  action: string
  change?: string
  count?: number
  from: string
  object?: string
  result: string
  role: string
  seq: number
  time: string
  user: string
  via: string
}

export type AuditList = {
  entries: Array<AuditEntry> | null
}

export type Before = {
  command: Command
  entrypoint?: Array<string> | null
  environment?: Record<string, string>
  files?: Array<File> | null
  gpus?: boolean
  image: string
  memoryMb?: number
  name: string
  ownGpus?: number
  sidecar?: boolean
  storage?: Array<Storage> | null
  user?: string
  workingDir?: string
}

export type Bucket = {
  bucketMax: number
  bucketName: string
}

export type Budget = {
  hours: number
  monthly?: boolean
  usedHours: number
}

export type Chunk = {
  size: number
  sum: string
}

export type ClusterInfo = {
  licenses?: Array<License> | null
  models?: Array<string> | null
  nodes: Array<Node> | null
  numFreeGpus?: number
  numGpus?: number
  partitions?: Array<Partition> | null
  total?: number
}

export type Command = string | Array<string>

export type Controller = {
  address: string
  alone?: boolean
  answers: boolean
  behind?: number
  counts: boolean
  differs?: Array<string> | null
  leads: boolean
  name: string
  stuck?: boolean
  unreadable?: string
  version?: string
}

export type ControllerList = {
  controllers: Array<Controller> | null
}

export type ConvertRequest = {
  image?: string
  text: string
  zone?: string
}

export type ConvertResponse = {
  format: string
  job: unknown
  notes?: Array<Note> | null
}

export type Credential = {
  password: string
  username: string
}

export type Curves = {
  at?: Array<number> | null
  attempt: number
  begin?: string
  cpus?: Array<number | null> | null
  gpu?: Array<number | null> | null
  gpuMemBytes?: Array<number | null> | null
  granted: Granted
  memBytes?: Array<number | null> | null
  rank: number
  receivedBps?: Array<number | null> | null
  sentBps?: Array<number | null> | null
  stepS?: number
  watts?: Array<number | null> | null
}

export type Dependency = {
  delay?: string
  jobs?: Array<string> | null
  type: string
}

export type Diagnosis = {
  backfilled: number
  commits: Timing
  diskFreeBytes: number
  diskReserveBytes: number
  estimates: Timing
  evaluated: number
  goroutines: number
  heapBytes: number
  inbox: number
  inboxSize: number
  now: string
  preempted: number
  records: number
  rounds: Timing
  routes: Array<RouteUse> | null
  running: number
  shapes: number
  started: string
  starts: number
  storeBytes: number
  streams: number
  truncated: number
  turns: Timing
  version: string
  waiting: number
}

export type Docker = {
  command: Command
  environment?: Record<string, string>
  groupAdd?: Array<string> | null
  image?: string
  portMappings?: Array<PortMapping> | null
  projectGidVariableName?: string
  storage?: Array<Storage> | null
  user?: string
  workingDir?: string
}

export type Document = {
  name: string
  spec: Spec
}

export type Done = {
  name?: string
  percent: number
}

export type DrainRequest = {
  evict?: boolean
  evictIn?: number
  gpu?: string
  reason?: string
  reboot?: boolean
}

export type DrainResult = {
  evicted: Array<EvictedJob> | null
  jobs: number
}

export type Ending = {
  kill?: string
  since?: string
  then?: string
}

export type Error = {
  code: string
  hint?: string
  message: string
  problems?: Array<Problem> | null
  status: number
}

export type Estimate = {
  at?: string
  nodes?: Array<string> | null
  now: boolean
  text: string
}

export type Event = {
  message: string
  state?: string
  time: string
}

export type EvictedJob = {
  id: string
  name: string
  user: string
  what: string
}

export type Exit = {
  code: number
  cpuSeconds?: number
  endedMs: number
  freeMs?: number
  gpu?: GPUUse
  later?: boolean
  message?: string
  peakMemBytes?: number
  reason?: string
  signal?: number
  silent?: boolean
  startedMs?: number
}

export type Explanation = {
  advice?: Array<Advice> | null
  before?: Array<number> | null
  estimate?: Estimate
  id: string
  nBefore?: number
  nodes?: Array<NodeVerdict> | null
  numQueued?: number
  number: number
  position?: number
  priority?: Priority
  reasons?: Array<Reason> | null
  state: string
}

export type Extra = {
  emailOnEnd?: Array<string> | null
  emailOnHalt?: Array<string> | null
  emailOnQueue?: Array<string> | null
  emailOnRestart?: Array<string> | null
  emailOnRun?: Array<string> | null
  sshPubKeys?: Array<string> | null
}

export type Fault = {
  seq: number
  text: string
}

export type File = {
  path: string
  program?: boolean
  secret?: string
  text: string
}

export type GPU = {
  celsius?: number
  computeCap?: string
  freeMilli: number
  index: number
  job?: number
  memBytes: number
  memUsedBytes?: number
  model: string
  numa: number
  unhealthy?: string
  utilization?: number
  uuid: string
}

export type GPUSample = {
  celsius?: number
  energyJ?: number
  memUsedBytes?: number
  utilization?: number
  uuid: string
}

export type GPUShare = {
  milli: number
  uuid: string
}

export type GPUUse = {
  energyJ?: number
  maxMemBytes?: number
  maxUtilization: number
  memBytes?: number
  samples: number
  simulated?: boolean
  utilization: number
}

export type Gbatch = {
  allMemory?: boolean
  anyFeatures?: Array<Array<string> | null> | null
  before?: Array<Before> | null
  beside?: Array<Before> | null
  capabilities?: Array<string> | null
  cron?: Array<string> | null
  cronOverlap?: boolean
  cronZone?: string
  dependOnAny?: boolean
  dependencies?: Array<Dependency> | null
  directories?: Array<string> | null
  diskGb?: number
  entrypoint?: Array<string> | null
  excludeNodes?: Array<string> | null
  exclusive?: boolean
  expandVariables?: boolean
  failTogether?: boolean
  files?: Array<File> | null
  haltGrace?: string
  haltSignal?: string
  idleGpu?: IdleGPU
  imageAlias?: string
  inputs?: Array<Input> | null
  instanceType?: string
  labels?: Record<string, string>
  launch?: Launch
  licenses?: Record<string, number>
  limitMin?: string
  limitScope?: string
  maxQueued?: string
  memoryByDefault?: boolean
  minComputeCapability?: number
  network?: string
  nodeNames?: Array<string> | null
  nodes?: number
  notify?: Array<Notify> | null
  ofRanks?: Array<Own> | null
  otherGroups?: Array<Group> | null
  outputs?: Array<Output> | null
  ownGpus?: number
  partitions?: Array<string> | null
  priority?: number
  privileged?: boolean
  progressFile?: string
  qos?: string
  ranksPerNode?: number
  replace?: boolean
  requireProgress?: boolean
  retry?: Retry
  runtime?: string
  s3?: S3
  secrets?: Array<Secret> | null
  shareOfNode?: boolean
  shmSizeMb?: number
  signalTo?: string
  source?: string
  startOrder?: string
  stdio?: Stdio
  stopGrace?: string
  stopRanks?: number
  stopSignal?: string
  stopWhen?: string
  tasks?: Tasks
  terminal?: boolean
  warnBefore?: string
  warnSignal?: string
}

export type Granted = {
  cpus: number
  gpuMemBytes?: number
  gpus?: number
  memBytes: number
}

export type Group = {
  command?: Command
  cpuMemoryGb: number
  cpus: number
  entrypoint?: Array<string> | null
  gpuMemoryGb?: number
  gpuModel?: Array<string> | null
  gpus: number
  minComputeCapability?: number
  nodes: number
  shareOfNode?: boolean
}

export type History = {
  jobs: Array<PastJob> | null
  next?: string
}

export type IdleGPU = {
  minUtilization: number
  window: string
}

export type ImagePeer = {
  address: string
  node: string
}

export type ImagePeers = {
  authority: string
  nodes: Array<ImagePeer> | null
  ticket: string
}

export type Input = {
  cache?: boolean
  path: string
  sha256?: string
  uri: string
}

export type Inventory = {
  address?: string
  ahead?: boolean
  allowShare?: boolean
  bridge?: boolean
  capabilities?: Array<string> | null
  cluster: number
  covers?: boolean
  cpus: number
  cuda?: number
  diskBytes?: number
  divides?: boolean
  dnsName: string
  driver?: string
  features?: Array<string> | null
  gang?: boolean
  gpus?: Array<InventoryGPU> | null
  hostname: string
  imagePort?: number
  memBytes: number
  noHost?: boolean
  privileged?: boolean
  runtimes?: Array<Runtime> | null
  several?: boolean
  simulated?: boolean
  storage: Array<Root> | null
  together?: boolean
  version: string
}

export type InventoryGPU = {
  computeCap?: number
  index: number
  links?: Array<string> | null
  memBytes: number
  model: string
  numa: number
  unhealthy?: string
  uuid: string
}

export type Job = {
  begin?: string
  cluster?: number
  comment?: string
  cpus?: number
  dependency?: string
  ended?: string
  ending?: Ending
  estStart?: string
  exitCode?: number
  factors?: Priority
  gpus?: number
  id: string
  licenses?: string
  limitMinS?: number
  limitS?: number
  memBytes?: number
  name: string
  nodes?: Array<string> | null
  numNodes?: number
  number?: number
  parent?: number
  partition?: string
  priority?: number
  private?: boolean
  project: string
  qos?: string
  reason?: string
  reasonText?: string
  restartInfo?: RestartInfo
  started?: string
  state: string
  steps?: Array<Step> | null
  submitted: string
  successor?: number
  task?: number
  tasks?: TaskSets
  template?: number
  user: string
  uuid: string
}

export type JobChange = {
  comment?: string
  limitMinS?: number
  limitS?: number
  name?: string
  priority?: number
  project?: string
  qos?: string
}

export type JobDetail = {
  attempts?: Array<Attempt> | null
  begin?: string
  class?: string
  cluster?: number
  comment?: string
  cpus?: number
  dependency?: string
  done?: Done
  ended?: string
  ending?: Ending
  estStart?: string
  events?: Array<Event> | null
  exitCode?: number
  factors?: Priority
  gpus?: number
  id: string
  licenses?: string
  limitMinS?: number
  limitS?: number
  log?: LogState
  memBytes?: number
  name: string
  nodes?: Array<string> | null
  numNodes?: number
  numQueued?: number
  number?: number
  parent?: number
  partition?: string
  position?: number
  priority?: number
  private?: boolean
  progress?: string
  project: string
  qos?: string
  reason?: string
  reasonText?: string
  restartInfo?: RestartInfo
  spec?: Spec
  started?: string
  state: string
  steps?: Array<Step> | null
  submitted: string
  successor?: number
  task?: number
  tasks?: TaskSets
  template?: number
  untold?: Array<Untold> | null
  used?: Used
  user: string
  uuid: string
  version: number
}

export type JobList = {
  jobs: Array<Job> | null
  noUser?: boolean
  total: number
}

export type JoinFile = {
  address: string
  entry?: number
  keys: Record<string, string>
  name: string
  patienceS?: number
}

export type JoinRequest = {
  request: string
}

export type JoinResponse = {
  certificate: string
}

export type KeyedSubmission = {
  dependency?: string
  dryRun?: boolean
  hold?: boolean
  interactive?: boolean
  job: unknown
  key?: string
  project?: string
}

export type Launch = {
  cpusPerTask?: number
  directory?: string
  file?: string
  gpusPerTask?: number
  host?: string
  script?: string
  tasks?: number
  tasksPerNode?: number
}

export type LaunchBegin = {
  cpus: number
  gpus?: number
  image?: string
  key: string
  name: string
  ranks: Array<number> | null
  tasks: number
}

export type LaunchEnd = {
  code: number
  oom?: boolean
  signal?: number
  step: number
  use?: StepUse
}

export type LaunchRequest = {
  begin?: LaunchBegin
  end?: LaunchEnd
  login?: boolean
  rank: RankID
  uuid: string
}

export type LaunchResponse = {
  registry?: Credential
  step: number
}

export type Leader = {
  name: string
}

export type License = {
  asked?: number
  name: string
  total: number
  used: number
}

export type LiveUse = {
  atMs?: number
  cpuSeconds: number
  gpu?: GPUUse
  gpuMemBytes?: number
  memBytes: number
  net?: NetUse
  peakMemBytes?: number
}

export type LogPiece = {
  data?: string
  end?: boolean
  lost?: number
  offset: number
  rank: RankID
  uuid: string
}

export type LogPieces = {
  pieces: Array<LogPiece> | null
}

export type LogPlace = {
  controller?: boolean
}

export type LogState = {
  archived?: boolean
  bytes: number
  complete?: boolean
  ranks: number
  until: string
}

export type LogTaken = {
  done?: boolean
  later?: boolean
  offset: number
  refused?: string
}

export type LoginAddress = {
  address: string
}

export type LoginPages = {
  issuer: string
  pages: Array<string> | null
}

export type LoginRequest = {
  idToken: string
}

export type LoginReturn = {
  code: string
  state: string
}

export type LoginSite = {
  clientId: string
  deviceEndpoint: string
  issuer: string
  scopes: Array<string> | null
  tokenEndpoint: string
}

export type LogsTaken = {
  pieces: Array<LogTaken> | null
}

export type NetUse = {
  receivedBytes: number
  sentBytes: number
}

export type NewController = {
  address: string
  name: string
}

export type Node = {
  cluster: number
  cpus: Use
  cuda?: string
  driver?: string
  features?: Array<string> | null
  gpus?: Array<GPU> | null
  hostname: string
  jobs: number
  lastSeen: string
  memBytes: Use
  name: string
  partitions?: Array<string> | null
  reason?: string
  reboot?: string
  simulated?: boolean
  since?: string
  skewMs?: number
  state: string
  storage?: Array<NodeStorage> | null
  version: string
}

export type NodeChange = {
  by?: string
  reason?: string
  state: string
  text: string
  time: string
}

export type NodeDetail = {
  cluster: number
  cpus: Use
  cuda?: string
  driver?: string
  features?: Array<string> | null
  gpus?: Array<GPU> | null
  hostname: string
  jobs: number
  lastSeen: string
  memBytes: Use
  name: string
  partitions?: Array<string> | null
  past: Array<NodeChange> | null
  reason?: string
  reboot?: string
  simulated?: boolean
  since?: string
  skewMs?: number
  state: string
  storage?: Array<NodeStorage> | null
  version: string
}

export type NodeStorage = {
  away?: string
  freeBytes?: number
  name: string
  readOnly?: boolean
  totalBytes?: number
}

export type NodeVerdict = {
  at?: string
  code?: string
  freeCpus: number
  freeGpus: number
  freeMemBytes: number
  node: string
  text?: string
}

export type Note = {
  message: string
  path?: string
}

export type Notify = {
  format?: string
  on?: Array<string> | null
  to: string
}

export type Order = {
  after?: RankID
  cancelSteps?: Array<number> | null
  go?: boolean
  id: RankID
  limitMs?: number
  paused?: boolean
  resize?: Resize
  run?: RunOrder
  secrets?: Secrets
  signals?: Array<Signal> | null
  stop?: Stop
  uuid?: string
}

export type Output = {
  path: string
  pattern?: string
  uri: string
  when?: string
}

export type Own = {
  environment?: Record<string, string>
  hosts?: Array<string> | null
}

export type Owner = {
  projectUrn?: string
  userEmail?: string
  userUrn?: string
}

export type Partition = {
  closed?: boolean
  default?: boolean
  defaultDurationS?: number
  maxCpusPerNode?: number
  maxDurationS?: number
  maxGpus?: number
  maxMemPerNode?: number
  maxNodes?: number
  memPerCore?: number
  minNodes?: number
  name: string
  nodes: Array<string> | null
  notProjects?: Array<string> | null
  notQos?: Array<string> | null
  priority?: number
  projects?: Array<string> | null
  qos?: Array<string> | null
  reason?: string
  state: string
}

export type PastJob = {
  attempts?: Array<Attempt> | null
  begin?: string
  cluster?: number
  comment?: string
  cpus?: number
  dependency?: string
  ended?: string
  ending?: Ending
  estStart?: string
  exitCode?: number
  factors?: Priority
  gpus?: number
  id: string
  licenses?: string
  limitMinS?: number
  limitS?: number
  memBytes?: number
  name: string
  nodes?: Array<string> | null
  numNodes?: number
  number?: number
  parent?: number
  partition?: string
  priority?: number
  private?: boolean
  project: string
  qos?: string
  reason?: string
  reasonText?: string
  restartInfo?: RestartInfo
  started?: string
  state: string
  steps?: Array<Step> | null
  submitted: string
  successor?: number
  task?: number
  tasks?: TaskSets
  template?: number
  used?: Used
  user: string
  uuid: string
}

export type Peer = {
  address: string
  cpus?: number
  gpus?: number
  inside?: string
  node: string
  tunnel?: number
}

export type Plan = {
  nodes: Array<PlanNode> | null
  now: string
  total: number
}

export type PlanNode = {
  gpus: number
  name: string
  spans: Array<PlanSpan> | null
  state: string
}

export type PlanSpan = {
  cpus?: number
  end?: string
  gpus?: number
  job?: string
  kind: "running" | "promised" | "reserved" | "maintenance"
  name?: string
  private?: boolean
  start: string
  user?: string
}

export type Policy = {
  changes?: Array<string> | null
  text: string
  warnings?: Array<string> | null
}

export type PortLink = {
  host: string
  secret: string
}

export type PortMapping = {
  containerPort: number
  hostIp?: string
  hostPort?: number
}

export type PortRequest = {
  path?: string
  rank?: number
}

export type Prepull = {
  digest?: string
  image: string
  job: number
  peers?: ImagePeers
  registry?: Credential
}

export type Prepulled = {
  error?: string
  job: number
  pullMs: number
}

export type Priority = {
  age: number
  boosted?: boolean
  fairShare: number
  partition?: number
  qos: number
  size: number
  slowdown?: number
  small?: number
  total: number
  user: number
}

export type Problem = {
  hint?: string
  message: string
  path: string
}

export type Project = {
  budget?: number
  budgetPeriod?: string
  capabilities?: Array<string> | null
  clusters?: Array<number> | null
  file?: boolean
  gid?: number
  groups?: Array<string> | null
  hostNetwork?: boolean
  limits?: ProjectLimits
  logs?: string
  members?: Array<string> | null
  name: string
  parent?: string
  privileged?: boolean
  runtime?: string
  shares?: number
  userShares?: Record<string, number>
  warnings?: Array<string> | null
}

export type ProjectLimits = {
  gpuMinutes?: number
  gpus?: number
  queued?: number
  running?: number
}

export type ProjectList = {
  projects: Array<Project> | null
}

export type Rank = {
  cores?: string
  cpus: number
  exit?: Exit
  gpus?: Array<GPUShare> | null
  image?: string
  memBytes: number
  node: string
  phase: string
  ports?: Array<PortMapping> | null
  resize?: RankResize
  use?: LiveUse
}

export type RankID = {
  attempt: number
  job: number
  rank: number
  task: number
}

export type RankResize = {
  cpus: number
  failed?: string
  memBytes: number
}

export type RankStatus = {
  cores?: string
  done?: Done
  exit?: Exit
  id: RankID
  image?: string
  phase: string
  ports?: Array<PortMapping> | null
  progress?: string
  pullMs?: number
  resize?: Resized
  secrets?: number
  signalled?: number
  startedMs?: number
  stopping?: boolean
  uuid?: string
}

export type RankUse = {
  atMs?: number
  cpuSeconds: number
  gpu?: GPUUse
  gpuMemBytes?: number
  id: RankID
  memBytes: number
  net?: NetUse
  peakMemBytes?: number
  uuid?: string
}

export type Reason = {
  at?: string
  code: string
  text: string
}

export type Reboot = {
  failed?: string
  seq: number
}

export type Recurrence = {
  schedule: string
  until?: string
  upcoming?: Array<Span> | null
  zone?: string
}

export type Request = {
  docker: Docker
  extra?: Extra
  resources: Resources
  scheduling: Scheduling
}

export type Reservation = {
  cluster?: number
  count?: number
  end: string
  every?: Recurrence
  gpuModels?: Array<string> | null
  gpus?: Array<string> | null
  gpusPerNode?: number
  maintenance?: boolean
  name: string
  nodes?: Array<string> | null
  others?: boolean
  partition?: string
  projects?: Array<string> | null
  reason?: string
  start: string
  users?: Array<string> | null
  uuid?: string
}

export type ReservationList = {
  reservations: Array<Reservation> | null
}

export type Resize = {
  cpus: number
  memBytes: number
  seq: number
}

export type Resized = {
  error?: string
  seq: number
}

export type Resources = {
  clusterId?: number
  cpuMemoryGb?: number
  cpus?: number
  features?: Array<string> | null
  gpuMemoryGb?: number
  gpuModel?: Array<string> | null
  gpus: number
  minCudaVersion?: number
  slaveName?: string
}

export type ResourcesRequest = {
  cpuMemoryGb?: number
  cpus?: number
}

export type ResourcesResponse = {
  message: string
  number: number
}

export type RestartInfo = {
  initialJobUuid: string
  of: number
  restartCount: number
}

export type Retry = {
  backoff?: string
  jobLimit?: number
  limit?: number
  maxWait?: string
  on?: Array<string> | null
  rules?: Array<RetryRule> | null
  window?: string
}

export type RetryRule = {
  action: string
  exitCodes?: Array<number> | null
  notExitCodes?: Array<number> | null
  reasons?: Array<string> | null
}

export type Root = {
  away?: string
  name: string
  readOnly?: boolean
}

export type RouteUse = {
  count: number
  failed?: number
  meanMs: number
  p50Ms: number
  p99Ms: number
  refused?: number
  route: string
}

export type RunOrder = {
  allocation: Allocation
  alone?: boolean
  array?: ArrayTask
  commands?: boolean
  digest?: string
  document?: string
  graceMs: number
  ids?: number
  imagePeers?: ImagePeers
  initial?: string
  limitMs?: number
  logs?: LogPlace
  masterPort?: number
  partition?: string
  peers?: Array<Peer> | null
  port?: number
  project: string
  projectGid: number
  queuedMs?: number
  ranks: number
  registry?: Credential
  restarts?: number
  secret?: string
  spec?: Spec
  uid?: number
  user: string
  uuid: string
}

export type Runtime = {
  name: string
  noGpus?: boolean
}

export type S3 = {
  accessKeySecret?: string
  endpoint?: string
  region?: string
  secretKeySecret?: string
  sessionTokenSecret?: string
}

export type Scheduling = {
  allowHaltWithoutSignal?: boolean
  interactive?: boolean
  maxDuration?: string
  maxSimultaneousJobs?: Bucket
  minDuration?: string
  notAfter?: string
  notBefore?: string
  reservationIds?: Array<string> | null
  restartable?: boolean
}

export type Secret = {
  name: string
  value?: string
}

export type Secrets = {
  values: Record<string, string>
  version: number
}

export type SecretsRequest = {
  values: Record<string, string>
}

export type SecretsResponse = {
  message: string
  number: number
  state: string
  version: number
}

export type Share = {
  budget?: Budget
  depth: number
  fairShare?: number
  levelFs: number
  monthHours: number
  normShares: number
  normUsage: number
  parent?: string
  project: string
  rank?: number
  shares: number
  totalHours: number
  usageHours: number
  user?: string
}

export type ShareList = {
  shares: Array<Share> | null
}

export type Signal = {
  name: string
  seq: number
}

export type Site = {
  address?: string
  defaultDurationS?: number
  defaultQos?: string
  graceS?: number
  jobsDomain?: string
  maxDurationS?: number
  page?: string
  pin: string
  qos?: Array<SiteQOS> | null
}

export type SiteQOS = {
  name: string
  preempts?: Array<string> | null
  priority: number
  runsAlone?: boolean
}

export type Span = {
  end: string
  start: string
}

export type Spec = {
  description?: string
  gbatch?: Gbatch
  name: string
  owner?: Owner
  request: Request
}

export type Status = {
  jobs: Record<string, number>
  projects: Array<string> | null
  role: string
  started: string
  version: string
  you: string
}

export type Stdio = {
  append?: boolean
  error?: string
  input?: string
  output?: string
}

export type Step = {
  attempt?: number
  begun: string
  cancel?: string
  code: number
  cpus: number
  ended?: string
  gpus?: number
  image?: string
  name: string
  nodes: Array<string> | null
  number: number
  oom?: boolean
  signal?: number
  tasks: number
  use?: StepUse
}

export type StepUse = {
  maxRssKib: number
  maxRssRank: number
  maxRssTask: number
  minCpuMs: number
  minCpuRank: number
  minCpuTask: number
  sumRssKib: number
  systemMs: number
  userMs: number
}

export type Stop = {
  ahead?: boolean
  graceMs: number
  reason: string
  signal: string
  text?: string
}

export type Storage = {
  containerPath: string
  hostPath: string
  ofMemory?: boolean
  readOnly?: boolean
  sizeGb?: number
  subPath?: string
  volume?: string
}

export type StorageSample = {
  freeBytes: number
  name: string
  totalBytes: number
}

export type StreamRequest = {
  follow?: boolean
  id: string
  kind: string
  offset?: number
  rank: RankID
  sinceMs?: number
  tail?: number
  user?: string
  uuid?: string
}

export type SubmitManyRequest = {
  jobs: Array<KeyedSubmission> | null
}

export type SubmitManyResponse = {
  results: Array<SubmitResult> | null
}

export type SubmitRequest = {
  dependency?: string
  dryRun?: boolean
  hold?: boolean
  interactive?: boolean
  job: unknown
  project?: string
}

export type SubmitResponse = {
  effective?: Spec
  estimate?: Estimate
  notes?: Array<Note> | null
  number?: number
  project: string
  repeated?: boolean
  state?: string
  uuid?: string
}

export type SubmitResult = {
  error?: Error
  submitted?: SubmitResponse
}

export type SyncRequest = {
  boot: string
  checked?: boolean
  documents?: Array<string> | null
  faults?: Array<Fault> | null
  instance: string
  inventory?: Inventory
  inventoryHash: string
  nonce?: number
  nowMs: number
  prepulled?: Array<Prepulled> | null
  ranks?: Array<RankStatus> | null
  reboot?: Reboot
  records?: string
  samples?: Array<GPUSample> | null
  seen: number
  storage?: Array<StorageSample> | null
  unhealthy?: Array<string> | null
  use?: Array<RankUse> | null
  waitMs: number
}

export type SyncResponse = {
  changed?: boolean
  desired?: Array<Order> | null
  documents?: Array<Document> | null
  leaseMs: number
  nonce?: number
  noted?: number
  prepull?: Array<Prepull> | null
  reboot?: number
  records?: string
  spreadMs?: number
  streams?: Array<StreamRequest> | null
  version: number
  wantInventory?: boolean
}

export type TaskSets = {
  cancelled?: string
  failed?: string
  indexes: string
  numActive: number
  numBelow?: number
  numCancelled: number
  numFailed: number
  numSucceeded: number
  numWaiting: number
  parallelism?: number
  succeeded?: string
  waiting?: string
}

export type Tasks = {
  enoughCount?: number
  enoughIndexes?: string
  failFast?: boolean
  indexes: string
  maxFailed?: number
  parallelism?: number
  reuse?: boolean
}

export type Timing = {
  count: number
  meanMs: number
  p50Ms: number
  p99Ms: number
}

export type Token = {
  by: string
  created: string
  expires: string
  id: string
  left?: number
  node?: string
  note?: string
  of?: string
  revoked?: string
  secret?: string
  subject?: string
  use: string
  user?: string
}

export type TokenList = {
  tokens: Array<Token> | null
}

export type TokenRequest = {
  lifeS?: number
  node?: string
  note?: string
  use: string
  user?: string
  uses?: number
}

export type TreeRequest = {
  chunks: Array<Chunk> | null
}

export type TreeResponse = {
  missing?: Array<string> | null
  tree?: string
}

export type Untold = {
  error: string
  event: string
  since: string
  to: string
  tries: number
}

export type UsageReport = {
  by: Array<string> | null
  end: string
  rows: Array<UsageRow> | null
  start: string
  total: UsageRow
}

export type UsageRow = {
  billedHours: number
  cluster?: number
  cpuSeconds: number
  day?: string
  ended?: Record<string, number>
  gpuSeconds: number
  memGibSeconds: number
  model?: string
  month?: string
  project?: string
  starts: number
  user?: string
  waitSeconds: number
}

export type Use = {
  free: number
  total: number
}

export type Used = {
  advice?: Array<string> | null
  billedHours: number
  cores?: number
  cpuSeconds: number
  cpuTimeS: number
  elapsedS: number
  gpu?: GPUUse
  gpuSeconds: number
  memBytes?: number
  memGibSeconds: number
  peakMemBytes: number
  ranksKnown?: number
}

export type WhatIf = {
  all: WhatIfWaits
  jobs: Array<WhatIfJob> | null
  now: string
  until: string
  users: Array<WhatIfWaits> | null
  whole: boolean
}

export type WhatIfJob = {
  after?: string
  before?: string
  id: string
  name: string
  project: string
  user: string
}

export type WhatIfRequest = {
  addNodes?: Array<string> | null
  file?: boolean
  set?: Array<string> | null
}

export type WhatIfWaits = {
  jobs: number
  later: number
  sooner: number
  startedAfter: number
  startedBefore: number
  user?: string
  waitAfterS: number
  waitBeforeS: number
}
