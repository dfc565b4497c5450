// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the start of a ULPDU, and as the payload of a Terminate. The first byte chooses; in
 * the first case the next two are the length of the ULPDU, which may be more than what is there.
 * What is parsed must mean the same when it is built again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "soft/iwarp/wire/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_equal(const struct iw_ddp *a, const struct iw_ddp *b)
{
	assert(a->is_tagged == b->is_tagged && a->is_last == b->is_last);
	assert(a->opcode == b->opcode && a->stag == b->stag && a->offset == b->offset);
	assert(a->invalidate == b->invalidate && a->queue == b->queue);
	assert(a->msn == b->msn && a->mo == b->mo);
}

static void check_built(const struct iw_ddp *ddp)
{
	uint8_t built[IW_UNTAGGED_HEAD];
	uint32_t head = iw_ddp_put(ddp, built);
	struct iw_ddp again;

	assert(head == iw_ddp_head_size(built[0]));
	assert(iw_ddp_get_later(built, head, IW_OPS_LATER, &again) == IW_NO_ERROR);
	check_equal(ddp, &again);
}

static void check_read_request(const uint8_t bytes[IW_READ_REQUEST_SIZE])
{
	uint8_t built[IW_READ_REQUEST_SIZE];
	struct iw_read_request read;

	iw_read_request_get(bytes, &read);
	iw_read_request_put(&read, built);
	assert(!memcmp(built, bytes, sizeof(built)));
}

static void try_header(const uint8_t *data, size_t size, uint32_t ulpdu)
{
	struct iw_ddp ddp;
	iw_error error;

	/* the caller has the header, if the ULPDU is long enough for one */
	if (ulpdu && (!size || size < iw_ddp_head_size(data[0])))
		ulpdu = (uint32_t)size;
	error = iw_ddp_get(data, ulpdu, &ddp);
	if (error != IW_NO_ERROR) {
		assert(error >> 12 <= 1);
		return;
	}
	check_built(&ddp);
	if (ddp.opcode == IW_OP_READ_REQUEST && iw_read_request_check(&ddp, ulpdu) == IW_NO_ERROR &&
	    size >= ulpdu)
		check_read_request(data + IW_UNTAGGED_HEAD);
}

/* Builds what was parsed; returns the size. */
static uint32_t build_again(const struct iw_terminate *from, uint8_t out[IW_TERMINATE_MAX])
{
	struct iw_offender offender = {.ulpdu = 99, .has_request = from->has_request};

	if (!from->has_segment)
		return iw_terminate_put(from->error, NULL, out);
	iw_ddp_put(&from->segment, offender.head);
	iw_read_request_put(&from->request, offender.request);
	return iw_terminate_put(from->error, &offender, out);
}

static void try_terminate(const uint8_t *data, size_t size)
{
	struct iw_terminate first, second, third;
	uint8_t built[IW_TERMINATE_MAX];
	uint32_t built_size;

	if (!iw_terminate_get(data, (uint32_t)size, &first))
		return;
	assert(first.error != IW_NO_ERROR);
	assert(size >= 4 && size <= IW_TERMINATE_MAX);
	if (first.has_segment)
		check_built(&first.segment);
	built_size = build_again(&first, built);
	assert(iw_terminate_get(built, built_size, &second));
	if (built_size > 4) {
		assert(second.error == first.error && second.has_segment);
		check_equal(&first.segment, &second.segment);
	}
	/* An error that no registry has may have been read in the other order, but once only. */
	built_size = build_again(&second, built);
	assert(iw_terminate_get(built, built_size, &third));
	assert(third.error == second.error && third.has_segment == second.has_segment);
	assert(third.has_request == second.has_request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	if (data[0] & 1)
		try_terminate(data + 1, size - 1 < UINT32_MAX ? size - 1 : 0);
	else
		try_header(data + 3, size - 3, (uint32_t)(data[1] << 8 | data[2]));
	return 0;
}
