// Tests of strings of bits that no single function stands for: a query writes them out.
#pragma once

#include "pg/types/similarity_test.h"

namespace gpujoin {

/// The Jaccard distance, 1 less the share of ones that two strings have in common, never exactly.
SimilarityTest common_share_test();

}  // namespace gpujoin
