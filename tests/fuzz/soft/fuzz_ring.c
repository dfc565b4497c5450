// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connected peer that writes anything into the shared segment. The input is a list of actions
 * (peer_input.h); its first byte chooses the paths.
 */
#include "peer_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer_input in = {data, size};
	uint8_t path = peer_byte(&in);
	struct lab *lab = peer_open_lab(path);

	peer_run(lab, &in, path);
	peer_close_lab(lab);
	return 0;
}
