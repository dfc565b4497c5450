// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the attributes of an open adapter as text and as JSON. Two tables give the name, kind and
 * unit of every member of the attribute structures.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <dat/dat_registry.h>

#include "common.h"
#include "info.h"

enum info_kind {
	INFO_STRING,
	INFO_U32,
	INFO_COUNT,
	INFO_BYTES, /* 64 bits */
	INFO_ADDRESS,
	INFO_BOOLEAN,
	INFO_SOCKADDR,
	INFO_MEM_TYPES,
	INFO_FLAGS,
	INFO_BITS, /* the same, of a DAT_COUNT: JSON has the number */
	INFO_CHOICE,
	INFO_MATRIX,
	INFO_NAMED, /* array of names and values; its length is at `count_offset` */
};

struct info_name {
	unsigned value;
	const char *name;
};

struct info_field {
	const char *name;
	enum info_kind kind;
	size_t offset;
	const char *unit;
	const struct info_name *names; /* flags and choices, terminated by NULL */
	size_t count_offset;
};

static const struct info_name info_iov_names[] = {
	{DAT_IOV_CONSUMER, "consumer"},
	{DAT_IOV_PROVIDER_NOMOD, "provider, unmodified"},
	{DAT_IOV_PROVIDER_MOD, "provider, may modify"},
	{0, NULL},
};
static const struct info_name info_qos_names[] = {
	{DAT_QOS_HIGH_THROUGHPUT, "high_throughput"},
	{DAT_QOS_LOW_LATENCY, "low_latency"},
	{DAT_QOS_ECONOMY, "economy"},
	{DAT_QOS_PREMIUM, "premium"},
	{DAT_QOS_BEST_EFFORT, "best_effort"},
	{0, NULL},
};
static const struct info_name info_completion_names[] = {
	{DAT_COMPLETION_SUPPRESS_FLAG, "suppress"},
	{DAT_COMPLETION_SOLICITED_WAIT_FLAG, "solicited_wait"},
	{DAT_COMPLETION_UNSIGNALLED_FLAG, "unsignalled"},
	{DAT_COMPLETION_BARRIER_FENCE_FLAG, "barrier_fence"},
	{DAT_COMPLETION_EVD_THRESHOLD_FLAG, "evd_threshold"},
	{DAT_COMPLETION_DEFAULT_FLAG, "default"},
	{0, NULL},
};
static const struct info_name info_creator_names[] = {
	{DAT_PSP_CREATES_EP_NEVER, "never"},
	{DAT_PSP_CREATES_EP_IFASKED, "if asked"},
	{DAT_PSP_CREATES_EP_ALWAYS, "always"},
	{0, NULL},
};
/* the sums that udat.h describes at these members */
static const struct info_name info_watermark_names[] = {
	{0x001, "low"}, {0x010, "soft high"}, {0x100, "hard high"}, {0, NULL}};
static const struct info_name info_srq_names[] = {
	{0x01, "available_dto_count"}, {0x10, "outstanding_dto_count"}, {0, NULL}};
static const struct info_name info_recv_names[] = {
	{0x01, "nbufs_allocated"}, {0x10, "bufs_alloc_span"}, {0, NULL}};
static const struct info_name info_pz_names[] = {
	{DAT_PZ_UNIQUE, "unique"},
	{DAT_PZ_SHAREABLE, "shareable"},
	{0, NULL},
};

#define IA(member, ...)                                                                            \
	{                                                                                          \
		.name = #member, .offset = offsetof(DAT_IA_ATTR, member), __VA_ARGS__              \
	}
#define PR(member, ...)                                                                            \
	{                                                                                          \
		.name = #member, .offset = offsetof(DAT_PROVIDER_ATTR, member), __VA_ARGS__        \
	}

static const struct info_field info_ia_fields[] = {
	IA(adapter_name, .kind = INFO_STRING),
	IA(vendor_name, .kind = INFO_STRING),
	IA(hardware_version_major, .kind = INFO_U32),
	IA(hardware_version_minor, .kind = INFO_U32),
	IA(firmware_version_major, .kind = INFO_U32),
	IA(firmware_version_minor, .kind = INFO_U32),
	IA(ia_address_ptr, .kind = INFO_SOCKADDR),
	IA(max_eps, .kind = INFO_COUNT),
	IA(max_dto_per_ep, .kind = INFO_COUNT),
	IA(max_rdma_read_per_ep_in, .kind = INFO_COUNT),
	IA(max_rdma_read_per_ep_out, .kind = INFO_COUNT),
	IA(max_rdma_read_per_ep_in_guaranteed, .kind = INFO_BOOLEAN),
	IA(max_rdma_read_per_ep_out_guaranteed, .kind = INFO_BOOLEAN),
	IA(max_rdma_read_in, .kind = INFO_COUNT),
	IA(max_rdma_read_out, .kind = INFO_COUNT),
	IA(max_evds, .kind = INFO_COUNT),
	IA(max_evd_qlen, .kind = INFO_COUNT, .unit = "events"),
	IA(max_iov_segments_per_dto, .kind = INFO_COUNT),
	IA(max_iov_segments_per_rdma_read, .kind = INFO_COUNT),
	IA(max_iov_segments_per_rdma_write, .kind = INFO_COUNT),
	IA(max_lmrs, .kind = INFO_COUNT),
	IA(max_lmr_block_size, .kind = INFO_BYTES, .unit = "bytes"),
	IA(max_lmr_virtual_address, .kind = INFO_ADDRESS),
	IA(max_pzs, .kind = INFO_COUNT),
	IA(max_message_size, .kind = INFO_BYTES, .unit = "bytes"),
	IA(max_rdma_size, .kind = INFO_BYTES, .unit = "bytes"),
	IA(max_rmrs, .kind = INFO_COUNT),
	IA(max_rmr_target_address, .kind = INFO_ADDRESS),
	IA(max_srqs, .kind = INFO_COUNT),
	IA(max_ep_per_srq, .kind = INFO_COUNT),
	IA(max_recv_per_srq, .kind = INFO_COUNT),
	IA(transport_attr, .kind = INFO_NAMED,
	   .count_offset = offsetof(DAT_IA_ATTR, num_transport_attr)),
	IA(vendor_attr, .kind = INFO_NAMED, .count_offset = offsetof(DAT_IA_ATTR, num_vendor_attr)),
	{.name = NULL},
};

static const struct info_field info_provider_fields[] = {
	PR(provider_name, .kind = INFO_STRING),
	PR(provider_version_major, .kind = INFO_U32),
	PR(provider_version_minor, .kind = INFO_U32),
	PR(dapl_version_major, .kind = INFO_U32),
	PR(dapl_version_minor, .kind = INFO_U32),
	PR(lmr_mem_types_supported, .kind = INFO_MEM_TYPES),
	PR(iov_ownership_on_return, .kind = INFO_CHOICE, .names = info_iov_names),
	PR(dat_qos_supported, .kind = INFO_FLAGS, .names = info_qos_names),
	PR(completion_flags_supported, .kind = INFO_FLAGS, .names = info_completion_names),
	PR(is_thread_safe, .kind = INFO_BOOLEAN),
	PR(max_private_data_size, .kind = INFO_COUNT, .unit = "bytes"),
	PR(supports_multipath, .kind = INFO_BOOLEAN),
	PR(ep_creator, .kind = INFO_CHOICE, .names = info_creator_names),
	PR(pz_support, .kind = INFO_CHOICE, .names = info_pz_names),
	PR(optimal_buffer_alignment, .kind = INFO_U32, .unit = "bytes"),
	PR(evd_stream_merging_supported, .kind = INFO_MATRIX),
	PR(srq_supported, .kind = INFO_BOOLEAN),
	PR(srq_watermarks_supported, .kind = INFO_BITS, .names = info_watermark_names),
	PR(srq_ep_pz_difference_supported, .kind = INFO_BOOLEAN),
	PR(srq_info_supported, .kind = INFO_BITS, .names = info_srq_names),
	PR(ep_recv_info_supported, .kind = INFO_BITS, .names = info_recv_names),
	PR(lmr_sync_req, .kind = INFO_BOOLEAN),
	PR(dto_async_return_guaranteed, .kind = INFO_BOOLEAN),
	PR(rdma_write_for_rdma_read_req, .kind = INFO_BOOLEAN),
	PR(provider_specific_attr, .kind = INFO_NAMED,
	   .count_offset = offsetof(DAT_PROVIDER_ATTR, num_provider_specific_attr)),
	{.name = NULL},
};

/* What was opened: the library that has the functions, and the name that the adapter goes by. */
static void info_opened_find(struct info_adapter *adapter, DAT_EVD_HANDLE async_evd)
{
	const DAT_PROVIDER *provider = DAT_HANDLE_TO_PROVIDER(async_evd);
	const char *name = adapter->name;
	Dl_info found;

	if (dladdr((void *)(uintptr_t)provider->ia_open_func, &found) && found.dli_fname)
		snprintf(adapter->library, sizeof(adapter->library), "%s", found.dli_fname);
	if (strncmp(name, "RO_AWARE_", 9) == 0)
		name += 9;
	adapter->is_default = strcmp(adapter->ia_attr.adapter_name, name) != 0;
}

void info_adapter_open(struct info_adapter *adapter)
{
	DAT_EVD_HANDLE async_evd;

	adapter->open_code = tool_ia_open(adapter->name, &async_evd, &adapter->ia);
	if (adapter->open_code != DAT_SUCCESS)
		return;
	/* allocated, because a structure with a const member cannot be assigned */
	adapter->provider_attr = calloc(1, sizeof(*adapter->provider_attr));
	if (!adapter->provider_attr)
		abort();
	adapter->open_code = dat_ia_query(adapter->ia, NULL, DAT_IA_FIELD_ALL, &adapter->ia_attr,
					  DAT_PROVIDER_FIELD_ALL, adapter->provider_attr);
	if (adapter->open_code != DAT_SUCCESS)
		info_adapter_close(adapter);
	else
		info_opened_find(adapter, async_evd);
}

void info_adapter_close(struct info_adapter *adapter)
{
	if (adapter->ia)
		dat_ia_close(adapter->ia, DAT_CLOSE_ABRUPT_FLAG);
	adapter->ia = DAT_HANDLE_NULL;
	free(adapter->provider_attr);
	adapter->provider_attr = NULL;
}

static uint32_t info_u32(const void *base, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static uint64_t info_u64(const void *base, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static const void *info_pointer(const void *base, size_t offset)
{
	const void *value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

/* The names of the flags that are set, or of the choice. */
static void info_names_text(const struct info_field *field, uint32_t value, char *text, size_t size)
{
	uint32_t rest = value;
	size_t used = 0;

	text[0] = '\0';
	for (const struct info_name *name = field->names; name->name; name++) {
		bool is_in = field->kind == INFO_CHOICE || name->value == 0
				     ? name->value == value
				     : (rest & name->value) != 0;

		if (!is_in || used >= size)
			continue;
		rest &= ~name->value;
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 name->name);
	}
	if (rest != 0 && field->kind != INFO_CHOICE && used < size)
		used += (size_t)snprintf(text + used, size - used, "%s0x%x", used ? ", " : "",
					 rest);
	if (used == 0)
		snprintf(text, size, field->kind == INFO_BITS ? "none" : "0x%x", value);
}

/* One memory type has the value 0, so it is always in the set; another is the sum of two. */
static void info_mem_types_text(uint32_t value, char *text, size_t size)
{
	snprintf(text, size, "virtual%s%s%s", value & DAT_MEM_TYPE_LMR ? ", lmr" : "",
		 value & DAT_MEM_TYPE_SHARED_VIRTUAL ? ", shared_virtual" : "",
		 (value & DAT_MEM_TYPE_SO_VIRTUAL) == DAT_MEM_TYPE_SO_VIRTUAL ? ", so_virtual"
									      : "");
}

static void info_bytes_text(uint64_t value, const char *unit, char *text, size_t size)
{
	static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	double scaled = (double)value;
	unsigned step = 0;

	for (; scaled >= 1024.0 && step < 6; step++)
		scaled /= 1024.0;
	if (step == 0)
		snprintf(text, size, "%" PRIu64 " %s", value, unit);
	else
		snprintf(text, size, "%" PRIu64 " %s (%.4g %sB)", value, unit, scaled,
			 prefixes[step]);
}

static void info_matrix_text(const DAT_PROVIDER_ATTR *attr, char *text, size_t size)
{
	static const char *const streams[6] = {"software",   "cr",   "dto",
					       "connection", "bind", "async"};
	size_t used = 0;

	for (int i = 0; i < 6; i++) {
		for (int j = i + 1; j < 6; j++) {
			if (!attr->evd_stream_merging_supported[i][j] && used < size)
				used += (size_t)snprintf(text + used, size - used, "%s%s+%s",
							 used ? ", " : "all but ", streams[i],
							 streams[j]);
		}
	}
	if (used == 0)
		snprintf(text, size, "all streams with all");
}

/* The value of any field except named attributes. */
static void info_field_text(const struct info_field *field, const void *base, char *text,
			    size_t size)
{
	uint32_t value = field->kind == INFO_STRING ? 0 : info_u32(base, field->offset);

	switch (field->kind) {
	case INFO_STRING:
		snprintf(text, size, "%s", (const char *)base + field->offset);
		break;
	case INFO_BYTES:
		info_bytes_text(info_u64(base, field->offset), field->unit, text, size);
		break;
	case INFO_ADDRESS:
		snprintf(text, size, "0x%" PRIx64, info_u64(base, field->offset));
		break;
	case INFO_BOOLEAN:
		snprintf(text, size, "%s", value ? "yes" : "no");
		break;
	case INFO_SOCKADDR:
		tool_address_text(info_pointer(base, field->offset), text, size);
		break;
	case INFO_MEM_TYPES:
		info_mem_types_text(value, text, size);
		break;
	case INFO_FLAGS:
	case INFO_BITS:
	case INFO_CHOICE:
		info_names_text(field, value, text, size);
		break;
	case INFO_MATRIX:
		info_matrix_text(base, text, size);
		break;
	default:
		if (field->kind == INFO_COUNT && (DAT_COUNT)value == DAT_VALUE_UNKNOWN)
			snprintf(text, size, "unknown");
		else
			snprintf(text, size, "%u%s%s", value, field->unit ? " " : "",
				 field->unit ? field->unit : "");
		break;
	}
}

static void info_named_print(const struct info_field *field, const void *base)
{
	const DAT_NAMED_ATTR *named = info_pointer(base, field->offset);
	uint32_t count = info_u32(base, field->count_offset);

	if (count == 0)
		printf("    %-36s none\n", field->name);
	for (uint32_t i = 0; i < count; i++)
		printf("    %-36s %s = %s\n", i == 0 ? field->name : "", named[i].name,
		       named[i].value);
}

static void info_fields_print(const struct info_field *field, const void *base)
{
	char text[512];

	for (; field->name; field++) {
		if (field->kind == INFO_NAMED) {
			info_named_print(field, base);
			continue;
		}
		info_field_text(field, base, text, sizeof(text));
		printf("    %-36s %s\n", field->name, text);
	}
}

void info_attr_print(const struct info_adapter *adapter)
{
	printf("  interface adapter\n");
	info_fields_print(info_ia_fields, &adapter->ia_attr);
	printf("  provider\n");
	info_fields_print(info_provider_fields, adapter->provider_attr);
}

static void info_named_print_json(const struct info_field *field, const void *base)
{
	const DAT_NAMED_ATTR *named = info_pointer(base, field->offset);
	uint32_t count = info_u32(base, field->count_offset);

	printf("{");
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			printf(", ");
		tool_json_string(stdout, named[i].name);
		printf(": ");
		tool_json_string(stdout, named[i].value);
	}
	printf("}");
}

static void info_matrix_print_json(const DAT_PROVIDER_ATTR *attr)
{
	for (int i = 0; i < 6; i++) {
		printf("%s[", i ? ", " : "[");
		for (int j = 0; j < 6; j++)
			printf("%s%s", j ? ", " : "",
			       attr->evd_stream_merging_supported[i][j] ? "true" : "false");
		printf("]");
	}
	printf("]");
}

static void info_fields_print_json(const struct info_field *field, const void *base)
{
	const struct info_field *first = field;
	char text[512];

	for (; field->name; field++) {
		printf("%s\"%s\": ", field == first ? "" : ", ", field->name);
		switch (field->kind) {
		case INFO_NAMED:
			info_named_print_json(field, base);
			break;
		case INFO_MATRIX:
			info_matrix_print_json(base);
			break;
		case INFO_U32:
			printf("%" PRIu32, info_u32(base, field->offset));
			break;
		case INFO_COUNT:
		case INFO_BITS:
			printf("%" PRId32, (int32_t)info_u32(base, field->offset));
			break;
		case INFO_BYTES:
		case INFO_ADDRESS:
			printf("%" PRIu64, info_u64(base, field->offset));
			break;
		case INFO_BOOLEAN:
			printf("%s", info_u32(base, field->offset) ? "true" : "false");
			break;
		default:
			info_field_text(field, base, text, sizeof(text));
			tool_json_string(stdout, text);
			break;
		}
	}
}

void info_attr_print_json(const struct info_adapter *adapter)
{
	printf("\"ia\": {");
	info_fields_print_json(info_ia_fields, &adapter->ia_attr);
	printf("}, \"provider\": {");
	info_fields_print_json(info_provider_fields, adapter->provider_attr);
	printf("}");
}
