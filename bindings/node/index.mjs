// The same as index.cjs, for `import`: one copy of the library's state for both.
import fawn from './index.cjs';

export const {
  Runtime,
  Subagents,
  Assembly,
  Thread,
  Queue,
  Run,
  FawnEvent,
  FawnError,
  version,
  abiVersion,
  statusName,
  describe,
  describeText,
  reduce,
  reduceText,
  convertMessages,
  convertMessagesText,
  diffDescriptors,
  diffDescriptorsText,
  drawDescriptor,
  drawDescriptorText,
} = fawn;
export default fawn;
