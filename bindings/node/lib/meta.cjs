'use strict';
// What needs no runtime: versions, descriptions, the state's reducers, and descriptors as data.

const addon = require('./addon.cjs');
const { toText } = require('./text.cjs');

/** The version of the library. */
const version = () => addon.version();

/** The version of the ABI that the library serves. */
const abiVersion = () => addon.abiVersion();

/** The name of a status as it stands in fawn.h. */
const statusName = (status) => addon.statusName(status);

/** What the library says about itself: "index", "build", "errors", "schemas", "schema/NAME", "handles". */
const describe = (topic) => JSON.parse(describeText(topic));
const describeText = (topic = '') => addon.describe(topic);

/** Folds updates into the value of a channel. */
const reduce = (channel, input) => JSON.parse(reduceText(channel, input));
const reduceText = (channel, input) => addon.reduce(channel, toText(input));

/** Brings messages into canonical form. */
const convertMessages = (input) => JSON.parse(convertMessagesText(input));
const convertMessagesText = (input) => addon.convert(toText(input));

/** Tells what makes the agent of one descriptor another than that of the other. */
const diffDescriptors = (pair) => JSON.parse(diffDescriptorsText(pair));
const diffDescriptorsText = (pair) => addon.diff(toText(pair));

/** Draws the agent of a descriptor as a Mermaid flowchart. */
const drawDescriptor = (descriptor) => JSON.parse(drawDescriptorText(descriptor)).mermaid;
const drawDescriptorText = (descriptor) => addon.diagram(toText(descriptor));

module.exports = {
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
};
