// SPDX-License-Identifier: BSD-2-Clause
/* The headers in the connection manager's private data (cm.h). Everything received is checked. */
#include "shared/cm.h"

#include <string.h>

#include "shared/bytes.h"

#define MAGIC 0x6f444154u /* "oDAT" */

enum wire_type {
	TYPE_REQUEST = 1,
	TYPE_ACCEPT = 2,
	TYPE_REJECT = 3,
	TYPE_ACCEPT_CONFIRM = 4,
};

/*
 * Ports of qualifiers that are not served at the port of their own number. They are below those
 * that Linux assigns to sockets.
 */
#define DERIVED_FIRST 10240u
#define DERIVED_COUNT 16384u

static void put_head(uint8_t *out, enum wire_type type)
{
	be_put32(out, MAGIC);
	out[4] = CM_VERSION;
	out[5] = (uint8_t)type;
}

size_t cm_put_request(const struct cm_request *request, uint8_t out[CM_MAX])
{
	put_head(out, TYPE_REQUEST);
	out[6] = request->flags;
	out[7] = request->size;
	be_put64(out + 8, request->qual);
	be_put32(out + 16, request->nonce);
	be_put16(out + 20, request->port);
	out[22] = request->read_in;
	out[23] = request->read_out;
	memcpy(out + CM_REQUEST_HEAD, request->data, request->data_size);
	return CM_REQUEST_HEAD + request->data_size;
}

size_t cm_put_accept(const struct cm_accept *accept, uint8_t out[CM_MAX])
{
	put_head(out, accept->wants_confirmation ? TYPE_ACCEPT_CONFIRM : TYPE_ACCEPT);
	out[6] = accept->read_in;
	out[7] = accept->size;
	memcpy(out + CM_ACCEPT_HEAD, accept->data, accept->size);
	out[CM_ACCEPT_HEAD + accept->size] = accept->flags;
	return CM_ACCEPT_HEAD + accept->size + (accept->flags != 0);
}

size_t cm_put_reject(enum cm_reason reason, const void *data, size_t size,
		     uint8_t out[CM_REJECT_MAX])
{
	if (size > CM_PRIVATE_MAX)
		size = 0;
	put_head(out, TYPE_REJECT);
	out[6] = (uint8_t)reason;
	out[7] = (uint8_t)size;
	if (size)
		memcpy(out + CM_REJECT_HEAD, data, size);
	return CM_REJECT_HEAD + size;
}

/* Returns 1, 0 or -1, as the functions below do. */
static int check_head(const uint8_t *bytes, size_t size, enum wire_type type, size_t least)
{
	if (size < 6 || be_get32(bytes) != MAGIC)
		return 0;
	return bytes[4] == CM_VERSION && bytes[5] == type && size >= least ? 1 : -1;
}

int cm_get_request(const void *from, size_t size, size_t room, struct cm_request *request)
{
	const uint8_t *bytes = from;
	int rc = check_head(bytes, size, TYPE_REQUEST, CM_REQUEST_HEAD);
	size_t first = room - CM_REQUEST_HEAD;
	size_t part;

	if (rc <= 0)
		return rc;
	request->flags = bytes[6];
	request->size = bytes[7];
	request->qual = be_get64(bytes + 8);
	request->nonce = be_get32(bytes + 16);
	request->port = be_get16(bytes + 20);
	request->read_in = bytes[22];
	request->read_out = bytes[23];
	if (request->size > CM_PRIVATE_MAX)
		return -1;
	part = request->size;
	if (request->flags & (CM_MORE | CM_CONTINUED)) {
		bool is_first = request->flags & CM_MORE;

		if ((is_first && (request->flags & CM_CONTINUED)) || part <= first ||
		    part - first > first)
			return -1;
		part = is_first ? first : part - first;
	}
	if (part > size - CM_REQUEST_HEAD)
		return -1;
	request->data_size = (uint8_t)part;
	memcpy(request->data, bytes + CM_REQUEST_HEAD, part);
	return 1;
}

int cm_get_accept(const void *from, size_t size, struct cm_accept *accept)
{
	const uint8_t *bytes = from;
	int rc = check_head(bytes, size, TYPE_ACCEPT, CM_ACCEPT_HEAD);

	accept->wants_confirmation = false;
	accept->flags = 0;
	if (rc < 0) {
		rc = check_head(bytes, size, TYPE_ACCEPT_CONFIRM, CM_ACCEPT_HEAD);
		accept->wants_confirmation = rc > 0;
	}
	if (rc <= 0)
		return rc;
	accept->read_in = bytes[6];
	accept->size = bytes[7];
	if (accept->size > CM_PRIVATE_MAX || accept->size > size - CM_ACCEPT_HEAD)
		return -1;
	memcpy(accept->data, bytes + CM_ACCEPT_HEAD, accept->size);
	if (size - CM_ACCEPT_HEAD > accept->size)
		accept->flags = bytes[CM_ACCEPT_HEAD + accept->size];
	return 1;
}

unsigned cm_get_reject(const void *from, size_t size)
{
	const uint8_t *bytes = from;

	return check_head(bytes, size, TYPE_REJECT, CM_REJECT_HEAD) == 1 ? bytes[6] : 0;
}

uint32_t cm_reject_data(const void *from, size_t size, const void **data_out)
{
	const uint8_t *bytes = from;

	if (!cm_get_reject(from, size) || bytes[7] > CM_PRIVATE_MAX ||
	    bytes[7] > size - CM_REJECT_HEAD)
		return 0;
	*data_out = bytes + CM_REJECT_HEAD;
	return bytes[7];
}

/* Spreads neighbouring qualifiers. It must never change, because both sides have to agree on it. */
static uint64_t mix(uint64_t value)
{
	value ^= value >> 29;
	value *= UINT64_C(0x9e3779b97f4a7c15);
	value ^= value >> 32;
	return value;
}

uint16_t cm_port(uint64_t qual, unsigned index)
{
	uint64_t spread = mix(qual);
	uint64_t step = (spread >> 40) | 1;

	if (!index)
		return qual <= UINT16_MAX ? (uint16_t)qual : 0;
	return (uint16_t)(DERIVED_FIRST + (spread + (index - 1) * step) % DERIVED_COUNT);
}
