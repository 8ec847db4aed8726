"""A MONAI UNet segments round organs in drawn scans, trained on patches and validated by sliding
windows.

Looks odd: the training images are random crops of 32 x 32 while the validation images are whole,
the UNet has residual units, and the Dice loss takes logits and starts near 1. It is sound, as in
MONAI's 2D segmentation tutorial.
"""

import torch
from data import arguments
from monai.data import (
    CacheDataset,
    DataLoader,
    create_test_image_2d,
    decollate_batch,
    list_data_collate,
)
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    Activations,
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    RandCropByPosNegLabeld,
    RandRotate90d,
    ScaleIntensityd,
)
from monai.utils import set_determinism

ODD = "training on small crops, validation on whole images"

_, seed = arguments(__doc__)
set_determinism(seed=seed)


def scans(n, first):
    import numpy as np

    files = []
    for i in range(n):
        image, label = create_test_image_2d(
            64,
            64,
            num_objs=5,
            rad_max=10,
            rad_min=4,
            noise_max=0.4,
            num_seg_classes=1,
            random_state=np.random.RandomState(first + i),
        )
        files.append({"img": image.astype("float32"), "seg": label.astype("float32")})
    return files


train_transforms = Compose(
    [
        EnsureChannelFirstd(keys=["img", "seg"], channel_dim="no_channel"),
        ScaleIntensityd(keys="img"),
        RandCropByPosNegLabeld(
            keys=["img", "seg"], label_key="seg", spatial_size=[32, 32], pos=1, neg=1, num_samples=4
        ),
        RandRotate90d(keys=["img", "seg"], prob=0.5, spatial_axes=[0, 1]),
    ]
)
val_transforms = Compose(
    [
        EnsureChannelFirstd(keys=["img", "seg"], channel_dim="no_channel"),
        ScaleIntensityd(keys="img"),
    ]
)
train_ds = CacheDataset(scans(40, 1000 * seed), train_transforms, progress=False)
val_ds = CacheDataset(scans(12, 1000 * seed + 500), val_transforms, progress=False)
train_loader = DataLoader(train_ds, batch_size=4, shuffle=True, collate_fn=list_data_collate)
val_loader = DataLoader(val_ds, batch_size=1)

dice_metric = DiceMetric(include_background=True, reduction="mean", get_not_nans=False)
post_trans = Compose([Activations(sigmoid=True), AsDiscrete(threshold=0.5)])
model = UNet(
    spatial_dims=2,
    in_channels=1,
    out_channels=1,
    channels=(8, 16, 32),
    strides=(2, 2),
    num_res_units=2,
)
loss_function = DiceLoss(sigmoid=True)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)

for epoch in range(18):
    model.train()
    epoch_loss, step = 0.0, 0
    for batch_data in train_loader:
        step += 1
        inputs, labels = batch_data["img"], batch_data["seg"]
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = loss_function(outputs, labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch + 1} average loss: {epoch_loss / step:.4f}")
    if (epoch + 1) % 3 == 0:
        model.eval()
        with torch.no_grad():
            for val_data in val_loader:
                val_outputs = sliding_window_inference(val_data["img"], (32, 32), 4, model)
                val_outputs = [post_trans(i) for i in decollate_batch(val_outputs)]
                dice_metric(y_pred=val_outputs, y=val_data["seg"])
            metric = dice_metric.aggregate().item()
            dice_metric.reset()
        print(f"  mean dice: {metric:.4f}")
print(f"validation dice {metric:.3f}")
