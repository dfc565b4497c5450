// SPDX-License-Identifier: BSD-2-Clause
/* The parts of a sequence in which a connection ends. */
#ifndef DIFFERENTIAL_ENDS_H
#define DIFFERENTIAL_ENDS_H

#include "model.h"

void end_connected(struct model *model, int side, int ep); /* begins in one of many ways */
void end_draining(struct model *model, int ep);		   /* goes on with a graceful disconnect */
void end_abrupt(struct model *model, int ep);		   /* whatever its state is */
void end_over(struct model *model, int ep); /* calls after the end; then it is made afresh */

#endif
