/* fawn_assembly. */
#include "binding.h"

/* assemblyNew(runtime, json): a handle. */
static napi_value assembly_new(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_runtime runtime;
  fawn_assembly handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_assembly_new(runtime, json.data, json.len, &handle, &err);
  return made(&c, status, KIND_ASSEMBLY, handle, &err);
}

/* assemblyDescriptor(assembly) */
static napi_value assembly_descriptor(napi_env env, napi_callback_info info) {
  call c;
  fawn_assembly assembly;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "an assembly", &assembly)) return NULL;
  int32_t status = fawn_assembly_descriptor(assembly, &out);
  return answer(&c, status, &out);
}

const named_function ASSEMBLY_FUNCTIONS[] = {
    {"assemblyNew", assembly_new}, {"assemblyDescriptor", assembly_descriptor}, {NULL, NULL}};
